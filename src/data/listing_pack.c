/* listing_pack.c -- the files of a pack as a listing: its index is read, nothing is searched. */
#include "data/folder_int.h"

#include <sys/stat.h>
#include <unistd.h>

#include "data/file_int.h"
#include "data/pack_int.h"

static co_err take_files(listing *l, const pack *p)
{
    for (uint64_t i = 0; i < p->n; i++) {
        uint64_t at, size;
        const char *path = pack_file(p, i, &at, &size);
        CO_TRY(listing_take(l, path, at, size));
    }
    return CO_OK;
}

/* Reads `len` bytes of the pack from its start: the index, or all of it into memory that ranks share. */
static co_err take_index(listing *l, uint8_t *bytes, uint64_t len, uint64_t file_len)
{
    pack p;

    if (!bytes)
        return CO_ENOMEM;
    if (!listing_read_fd(l->fd, bytes, len, 0, l->root))
        return CO_EINPUT;
    CO_TRY(pack_index(&p, bytes, (size_t)len, file_len, l->root));
    return take_files(l, &p);
}

co_err listing_open_pack(listing *l, uint64_t in_memory)
{
    uint8_t head[PACK_HEAD], *index = NULL;
    struct stat st;
    pack p;

    l->is_archive = true;
    l->fd = file_open(l->root);
    if (l->fd < 0 || fstat(l->fd, &st) != 0)
        return co_fail_in(CO_EINPUT, "data.dir");
    if (st.st_size < PACK_HEAD || !listing_read_fd(l->fd, head, PACK_HEAD, 0, l->root))
        return co_fail(CO_EINPUT, "data.dir: %s: shorter than the head of a pack: is the copy complete?",
                       l->root);
    uint64_t len = (uint64_t)st.st_size;
    co_err err = pack_head(&p, head, len, l->root);
    if (!err && len <= in_memory) {
        l->block_bytes = (size_t)len;
        l->block = co_alloc_shared(l->block_bytes);
        err = take_index(l, l->block, len, len);
        close(l->fd);
        l->fd = -1;
    } else if (!err) {
        index = co_alloc((size_t)pack_index_end(&p));
        err = take_index(l, index, pack_index_end(&p), len);
        co_free(index);
    }
    return err ? co_fail_in(err, "data.dir") : CO_OK;
}
