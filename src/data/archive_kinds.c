/* archive_kinds.c -- walks the files of a zip, and those of a tar. */
#include "data/archive_int.h"

#include <string.h>

#include "base/zip.h"
#include "data/images_int.h"

enum { PIECE = 1 << 16 };

static co_err zip_entries(outbox *out, const co_zip_file *zip)
{
    uint64_t all = 0;

    for (int i = 0; i < zip->n; i++) /* before anything is written */
        if (zip->entry[i].len > out->limits->most_bytes - all)
            return co_fail(CO_EFORMAT, "%s: it unpacks to more than %llu bytes: refused", out->archive,
                           (unsigned long long)out->limits->most_bytes);
        else
            all += zip->entry[i].len;
    for (int i = 0; i < zip->n; i++) {
        const co_zip_entry *e = &zip->entry[i];
        if (e->name[strlen(e->name) - 1] == '/' && e->len == 0)
            continue; /* a folder: made when a file of it comes */
        if (e->is_link)
            return co_fail(CO_EFORMAT, "%s: %s is a symbolic link: refused", out->archive, e->name);
        CO_TRY(outbox_begin(out, e->name));
        CO_TRY(co_zip_unpack(zip, e, outbox_put, out));
        CO_TRY(outbox_end(out));
    }
    return CO_OK;
}

co_err unpack_zip(outbox *out)
{
    co_zip_file zip;
    co_err err = co_zip_open(&zip, out->archive);

    if (!err)
        err = zip_entries(out, &zip);
    co_zip_close(&zip);
    return err;
}

static co_err tar_file(outbox *out, tar *t)
{
    uint8_t piece[PIECE];
    const char *name = strncmp(t->name, "./", 2) == 0 ? t->name + 2 : t->name;

    CO_TRY(outbox_begin(out, name));
    for (uint64_t left = t->size; left > 0;) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        CO_TRY(tar_part(t, piece, n));
        CO_TRY(outbox_put(out, piece, n));
        left -= n;
    }
    return outbox_end(out);
}

co_err unpack_tar(outbox *out)
{
    packed *in;
    bool is_one = true;

    CO_TRY(packed_open(&in, out->archive));
    /* heads and padding come on top of the files */
    packed_limit(in, out->limits->most_bytes + 2048 * out->limits->most_files + PIECE);
    tar t = {.in = in};
    co_err err = CO_OK;
    while (!err && is_one) {
        err = tar_next(&t, &is_one);
        if (!err && is_one)
            err = tar_file(out, &t);
    }
    packed_close(in);
    return err == CO_EINPUT ? CO_EFORMAT : err;
}
