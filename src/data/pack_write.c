/* pack_write.c -- writes a pack: head and index first, whose sizes the listing knows, then the files one
 * after the other. Under a temporary name until it is complete and on disk. */
#include "data/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fs.h"
#include "data/check.h"
#include "data/folder_int.h"
#include "data/pack_int.h"

struct writer {
    const listing *l;
    const char *path; /* of the temporary file */
    int fd;
    uint64_t bytes; /* of all files */
    uint64_t n, names_len;
    void (*tell)(void *ctx, uint64_t done, uint64_t of);
    void *ctx;
};

static bool is_packed(const entry *e)
{
    return e->kind != ENTRY_FOLDER;
}

static co_err write_fully(const struct writer *w, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(w->fd, (const char *)bytes + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return co_fail(CO_EIO, "write %s: %m", w->path);
        done += (size_t)n;
    }
    return CO_OK;
}

static co_err write_index(struct writer *w, const char *set)
{
    uint64_t len = PACK_HEAD + w->n * PACK_ENTRY + w->names_len;
    pack p = {.n = w->n, .names_len = w->names_len, .data_at = len, .file_len = len + w->bytes};
    uint8_t *bytes = co_alloc(len);

    if (!bytes)
        return CO_ENOMEM;
    snprintf(p.set, sizeof p.set, "%s", set);
    uint8_t *e = bytes + PACK_HEAD;
    char *names = (char *)e + w->n * PACK_ENTRY;
    uint64_t at = len, name = 0;
    for (size_t i = 0; i < w->l->n; i++) {
        const entry *from = &w->l->entries[i];
        const char *path = listing_path(w->l, from->path);
        if (!is_packed(from))
            continue;
        co_le_put(e, at, 8);
        co_le_put(e + 8, from->size, 8);
        co_le_put(e + 16, name, 4);
        strcpy(names + name, path);
        name += strlen(path) + 1;
        at += from->size;
        e += PACK_ENTRY;
    }
    pack_seal(bytes, &p);
    co_err err = write_fully(w, bytes, len);
    co_free(bytes);
    return err;
}

static co_err write_files(struct writer *w)
{
    uint64_t done = 0, told = co_now_ns(), most = 1;
    co_err err = CO_OK;

    for (size_t i = 0; i < w->l->n; i++)
        most = is_packed(&w->l->entries[i]) && w->l->entries[i].size > most ? w->l->entries[i].size : most;
    uint8_t *room = most <= PICTURE_FILE_MOST ? co_alloc(most) : NULL;
    if (!room)
        return most <= PICTURE_FILE_MOST
                   ? CO_ENOMEM
                   : co_fail(CO_EINPUT, "data.dir: %s has a file above 256 MiB", w->l->root);
    for (size_t i = 0; i < w->l->n && !err; i++) {
        const entry *e = &w->l->entries[i];
        if (!is_packed(e))
            continue;
        const uint8_t *bytes = listing_read(w->l, e->at, e->size, e->path, room);
        err = bytes ? write_fully(w, bytes, e->size) : CO_EINPUT;
        done++;
        if (w->tell && co_now_ns() - told > 500000000u) {
            w->tell(w->ctx, done, w->n);
            told = co_now_ns();
        }
    }
    co_free(room);
    return err;
}

static co_err write_pack(struct writer *w, const char *set)
{
    w->fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (w->fd < 0)
        return co_fail(CO_EIO, "create %s: %m", w->path);
    co_err err = write_index(w, set);
    if (!err)
        err = write_files(w);
    if (!err && fsync(w->fd) != 0)
        err = co_fail(CO_EIO, "write %s: %m", w->path);
    close(w->fd);
    return err;
}

/* The row of the folder's set; NULL with a message if it is no folder of pictures. */
static const folder_set *find_set(const char *dir)
{
    static const folder_set *const sets[] = {&imagefolder_set, &tinyimagenet_set, &cinic10_set, &imagenet_set};
    const co_data_layout *layout = co_data_recognise(dir);

    for (size_t i = 0; i < CO_COUNT(sets) && layout; i++)
        if (strcmp(sets[i]->def.name, layout->data) == 0)
            return sets[i];
    if (!co_fs_exists(dir))
        co_fail(CO_EINPUT, "%s: no such file or folder", dir);
    else
        co_fail(CO_EINPUT, "%s is %s%s: folders of pictures are packed, nothing else", dir,
                layout ? "data=" : "nothing known", layout ? layout->data : "");
    return NULL;
}

/* Folders that training would refuse are refused here: the index says why. */
static co_err list_files(listing *l, const folder_set *set, const char *dir)
{
    folder_index x = {0};

    CO_TRY(listing_open(l, dir, 0));
    CO_TRY(folder_index_make(&x, l, &set->rules, 0.1, 0.1));
    folder_index_fini(&x);
    return CO_OK;
}

co_err co_data_pack(co_pack_facts *facts, const char *dir, const char *out,
                    void (*tell)(void *ctx, uint64_t done, uint64_t of), void *ctx)
{
    const folder_set *set = find_set(dir);
    listing l = {.fd = -1};
    char temporary[4096];

    if (!set)
        return CO_EINPUT;
    if (!pack_named(out) || co_fs_exists(out))
        return co_fail(CO_EINPUT, "--out %s: %s", out,
                       pack_named(out) ? "it is there already" : "a name that ends in .pack is needed");
    if (snprintf(temporary, sizeof temporary, "%s.%d.tmp", out, (int)getpid()) >= (int)sizeof temporary)
        return co_fail(CO_EINPUT, "--out: the path is too long");
    struct writer w = {.l = &l, .path = temporary, .tell = tell, .ctx = ctx};
    co_err err = list_files(&l, set, dir);
    for (size_t i = 0; i < l.n && !err; i++)
        if (is_packed(&l.entries[i])) {
            w.n++;
            w.bytes += l.entries[i].size;
            w.names_len += strlen(listing_path(&l, l.entries[i].path)) + 1;
        }
    if (!err)
        err = write_pack(&w, set->def.name);
    if (!err && rename(temporary, out) != 0)
        err = co_fail(CO_EIO, "rename %s to %s: %m", temporary, out);
    if (err)
        unlink(temporary);
    else
        *facts = (co_pack_facts){set->def.name, w.n, w.bytes};
    listing_close(&l);
    return err;
}
