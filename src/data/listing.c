/* listing.c -- the files of a data set of pictures, wherever they lie: in folders, or in a tar archive.
 *
 * An archive is never unpacked into separate files. A packed one becomes one plain file (cache.c). It is then
 * read into memory as a whole if it fits data.cache_mb; if not, each picture is read from its place in the
 * file. So 11,000 pictures open as fast as one file is read. The pictures of a folder are read into one
 * block, under the same limit.
 *
 * Costs per file: its path, 32 bytes, and its own bytes once for all ranks of the host.
 */
#include "data/folder_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "data/cache_int.h"
#include "data/file_int.h"
#include "data/pack_int.h"

/* --- the list ------------------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcasecmp(name + n - m, end) == 0;
}

co_err listing_add(listing *l, const char *path, entry_kind kind, uint64_t at, uint64_t size)
{
    size_t len = strlen(path) + 1;

    while (l->names_len + len > l->names_room) {
        size_t room = l->names_room ? l->names_room * 2 : 1 << 16;
        char *more = co_realloc(l->names, room);
        if (!more)
            return CO_ENOMEM;
        l->names = more;
        l->names_room = room;
    }
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 1024;
        entry *more = co_realloc(l->entries, room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        l->entries = more;
        l->room = room;
    }
    if (l->names_len + len > UINT32_MAX)
        return co_fail(CO_EINPUT, "data.dir: %s has more files than can be listed (4 GiB of names)", l->root);
    memcpy(l->names + l->names_len, path, len);
    l->entries[l->n++] = (entry){at, size, (uint32_t)l->names_len, kind};
    l->names_len += len;
    /* Sparse files claim what they like: a sum that wraps would seem to fit in memory. */
    if (kind == ENTRY_PICTURE)
        l->bytes = size > UINT64_MAX - l->bytes ? UINT64_MAX : l->bytes + size;
    return CO_OK;
}

/* The texts that label pictures, or name classes. */
static bool is_text(const char *name)
{
    static const char *const names[] = {"val_annotations.txt", "words.txt", "wnids.txt",
                                        "LOC_synset_mapping.txt"};

    for (size_t i = 0; i < CO_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

co_err listing_take(listing *l, const char *path, uint64_t at, uint64_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (picture_named(name))
        return listing_add(l, path, ENTRY_PICTURE, at, size);
    int kind = unsupported_named(name);
    if (kind >= 0) {
        l->unsupported[kind]++;
        return CO_OK;
    }
    if (is_text(name))
        return listing_add(l, path, ENTRY_TEXT, at, size);
    if (l->passed_over++ > 0)
        return CO_OK;
    CO_TRY(listing_add(l, path, ENTRY_TEXT, at, size));
    l->passed_path = l->entries[--l->n].path; /* its name is kept, for a message */
    return CO_OK;
}

const char *listing_unsupported(const listing *l, char out[256])
{
    int at = 0;
    char n[32];

    out[0] = 0;
    for (int i = 0; i < UNSUPPORTED && at < 200; i++)
        if (l->unsupported[i])
            at += snprintf(out + at, 256 - (size_t)at, "%s%s %s file%s", at ? ", " : "",
                           with_commas(n, l->unsupported[i]), unsupported_endings[i],
                           l->unsupported[i] == 1 ? "" : "s");
    return out;
}

/* --- archives ------------------------------------------------------------------------------------------- */

static bool is_archive(const char *name)
{
    return ends_in(name, ".tar") || ends_in(name, ".tar.xz") || ends_in(name, ".tar.gz");
}

/* A part of the path that begins with a dot, or what macOS puts into archives. */
static bool is_hidden(const char *path)
{
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (*part == '.' || strncmp(part, "__MACOSX", 8) == 0)
            return true;
    return false;
}

static co_err list_archive(listing *l, packed *in)
{
    tar t = {.in = in};
    bool more = true;

    for (;;) {
        CO_TRY(tar_next(&t, &more));
        if (!more)
            return CO_OK;
        const char *name = t.name;
        while (strncmp(name, "./", 2) == 0)
            name += 2;
        if (*name && !is_hidden(name))
            CO_TRY(listing_take(l, name, t.at, t.size));
    }
}

/* All that `in` unpacks to, into memory that grows. */
static co_err read_whole(uint8_t **block, size_t *len, packed *in, uint64_t most)
{
    size_t room = 1 << 22, got = 0;

    *len = 0;
    for (*block = NULL; !*block || *len == room; *len += got) {
        room = *block ? room * 2 : room;
        uint8_t *more = co_realloc(*block, room);
        if (!more)
            return CO_ENOMEM;
        *block = more;
        CO_TRY(packed_read(in, *block + *len, room - *len, &got));
        if (*len + got > most)
            return co_fail(CO_EINPUT,
                           "%s unpacks to more than data.cache_mb allows in memory: let COHORT_CACHE name a "
                           "folder with room for it, or unpack it yourself",
                           packed_path(in));
    }
    return CO_OK;
}

/* The same, into memory that ranks share. */
static co_err read_shared(listing *l, packed *in, uint64_t most)
{
    uint8_t *own = NULL;
    size_t len;
    co_err err = read_whole(&own, &len, in, most);

    if (!err && !(l->block = co_alloc_shared(len)))
        err = CO_ENOMEM;
    if (!err) {
        memcpy(l->block, own, len);
        l->block_bytes = len;
    }
    co_free(own);
    return err;
}

/* `plain` is the archive, or what it unpacks to; "": that could not be kept, it is unpacked into memory. */
static co_err open_archive(listing *l, const char *plain, uint64_t in_memory)
{
    struct stat st;
    packed *in = NULL;
    co_err err = packed_open(&in, *plain ? plain : l->root);

    if (!err && *plain && stat(plain, &st) == 0 && (uint64_t)st.st_size > in_memory) {
        l->fd = file_open(plain);
        err = l->fd < 0 ? CO_EINPUT : list_archive(l, in);
    } else if (!err) {
        err = read_shared(l, in, in_memory);
        packed_close(in);
        in = NULL;
        if (!err)
            err = packed_of_bytes(&in, l->block, l->block_bytes, "the archive");
        if (!err)
            err = list_archive(l, in);
    }
    packed_close(in);
    return err;
}

static co_err find_archive(listing *l, uint64_t in_memory)
{
    char plain[4096];

    l->is_archive = true;
    if (ends_in(l->root, ".tar"))
        snprintf(plain, sizeof plain, "%s", l->root);
    else
        CO_TRY(cache_plain(plain, l->root, 0));
    co_err err = open_archive(l, plain, in_memory);
    return err ? co_fail_in(err, "data.dir: %s", l->root) : CO_OK;
}

/* --- folders -------------------------------------------------------------------------------------------- */

static co_err load_pictures(listing *l)
{
    uint64_t at = 0;

    l->block_bytes = l->bytes + 1;
    l->block = co_alloc_shared(l->block_bytes);
    if (!l->block)
        return CO_ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        entry *e = &l->entries[i];
        if (e->kind != ENTRY_PICTURE)
            continue;
        uint8_t *to = l->block + at;
        listing on_disk = {.root = l->root, .names = l->names, .fd = -1};
        bool there = listing_read(&on_disk, 0, e->size, e->path, to);
        e->at = there ? at : ENTRY_UNREAD;
        at += e->size;
    }
    return CO_OK;
}

/* The only thing in the folder `dir`, if that is an archive; else NULL. */
static co_err sole_archive(char **out, const char *dir)
{
    char **names;
    size_t n, archives = 0, others = 0, which = 0;

    *out = NULL;
    CO_TRY(co_fs_list(&names, &n, dir));
    for (size_t i = 0; i < n; i++) {
        if (names[i][0] == '.')
            continue;
        if (is_archive(names[i]))
            which = i, archives++;
        else
            others += !ends_in(names[i], ".md") && !ends_in(names[i], ".txt");
    }
    co_err err = CO_OK;
    if (archives == 1 && !others) {
        *out = co_sprintf("%s/%s", dir, names[which]);
        err = *out ? CO_OK : CO_ENOMEM;
    }
    co_fs_list_free(names, n);
    return err;
}

static co_err open_folder(listing *l, uint64_t in_memory)
{
    char *archive;

    CO_TRY(sole_archive(&archive, l->root));
    if (archive) {
        co_free(l->root);
        l->root = archive;
        return find_archive(l, in_memory);
    }
    CO_TRY(listing_walk(l));
    return l->bytes <= in_memory ? load_pictures(l) : CO_OK;
}

co_err listing_open(listing *out, const char *dir, uint64_t in_memory)
{
    listing l = {.fd = -1, .root = co_strdup(dir)};
    co_err err;

    if (!l.root)
        return CO_ENOMEM;
    if (co_fs_is_dir(dir))
        err = open_folder(&l, in_memory);
    else if (!co_fs_exists(dir))
        err = co_fail(CO_EINPUT, "data.dir: %s: %s", dir, strerror(ENOENT));
    else if (is_archive(dir))
        err = find_archive(&l, in_memory);
    else if (pack_named(dir))
        err = listing_open_pack(&l, in_memory);
    else
        err = co_fail(CO_EINPUT,
                      "data.dir: %s: neither a folder nor a .tar, .tar.xz or .tar.gz archive, nor a .pack%s",
                      dir, ends_in(dir, ".zip") ? ": unzip it" : "");
    if (err) {
        listing_close(&l);
        return err == CO_EIO ? CO_EINPUT : err;
    }
    *out = l;
    return CO_OK;
}

void listing_close(listing *l)
{
    if (l->fd >= 0)
        close(l->fd);
    co_free_shared(l->block);
    co_free(l->entries);
    co_free(l->names);
    co_free(l->root);
    *l = (listing){.fd = -1};
}

/* --- reading -------------------------------------------------------------------------------------------- */

bool listing_read_fd(int fd, uint8_t *to, uint64_t size, uint64_t at, const char *path)
{
    for (uint64_t done = 0; done < size;) {
        ssize_t n = pread(fd, to + done, (size_t)(size - done), (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : ENODATA;
            co_fail(CO_EINPUT, "read %s: %s", path, n ? strerror(errno) : "shorter than it was");
            return false;
        }
        done += (uint64_t)n;
    }
    return true;
}

const uint8_t *listing_read(const listing *l, uint64_t at, uint64_t size, uint32_t path, void *room)
{
    return listing_read_part(l, at, 0, size, path, room);
}

const uint8_t *listing_read_part(const listing *l, uint64_t at, uint64_t skip, uint64_t len, uint32_t path,
                                 void *room)
{
    uint64_t size = skip + len;
    const char *name = listing_path(l, path);
    char full[4096];

    if (l->block && at != ENTRY_UNREAD)
        return l->block + at + skip;
    if (size > PICTURE_FILE_MOST) {
        /* Sizes are kept in 32 bits: the largest stands for all above it. */
        if (size < UINT32_MAX)
            co_fail(CO_EINPUT, "%s: %llu bytes; 256 MiB are the most that is read", name,
                    (unsigned long long)size);
        else
            co_fail(CO_EINPUT, "%s: more than 4 GiB; 256 MiB are the most that is read", name);
        return NULL;
    }
    if (l->fd >= 0)
        return listing_read_fd(l->fd, room, len, at + skip, name) ? room : NULL;
    if (snprintf(full, sizeof full, "%s/%s", l->root, name) >= (int)sizeof full) {
        co_fail(CO_EINPUT, "%s: the path is too long", name);
        return NULL;
    }
    int fd = file_open(full);
    if (fd < 0)
        return NULL;
    bool good = listing_read_fd(fd, room, len, skip, full);
    int why = errno;
    close(fd);
    errno = why;
    return good ? room : NULL;
}
