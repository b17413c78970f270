/* folder_sample.c -- a sample of the bytes of a set that is too large to be hashed whole.
 *
 * Imagine all files laid end to end, in the order of the samples. PIECES places are spread evenly over that
 * length; a piece of up to PIECE bytes is hashed at each. The places depend on the sizes of the files alone,
 * so all hosts that have the same files hash the same pieces, from a folder, an archive or memory.
 *
 * This finds a set that was made differently (pictures in another order, of another quality, encrypted,
 * damaged on the way). It does not find one file of thousands that differs.
 *
 * Cost: PIECES files are opened and 1 MiB is read; some 10 ms on a local disk, about a second on a slow
 * network disk.
 */
#include "data/folder_int.h"

enum { PIECES = 256, PIECE = 4096 };

/* Adds the piece of the file that begins at `skip`, or ends with the file. */
static void add_piece(co_sha256 *h, const listing *l, const sample *file, uint64_t skip)
{
    uint8_t room[PIECE];
    uint64_t len = file->size < PIECE ? file->size : PIECE;
    bool unread = l->block && file->at == ENTRY_UNREAD;

    if (skip > file->size - len)
        skip = file->size - len;
    const uint8_t *bytes = unread || file->size > PICTURE_FILE_MOST
                               ? NULL
                               : listing_read_part(l, file->at, skip, len, file->path, room);
    if (bytes)
        co_sha256_add(h, bytes, len);
    co_errclear();
}

void folder_sample_bytes(co_sha256 *h, const listing *l, const sample *files, uint32_t n)
{
    uint64_t all = 0, before = 0;
    uint32_t i = 0;

    for (uint32_t k = 0; k < n; k++)
        all += files[k].size; /* no overflow: 2^32 files of 2^32 bytes */
    for (uint64_t piece = 0; piece < PIECES && all > 0; piece++) {
        uint64_t place = all / PIECES * piece + all / (2 * PIECES);
        while (place >= before + files[i].size)
            before += files[i++].size;
        add_piece(h, l, &files[i], place - before);
    }
}
