/* idx.c -- the head of an idx file, the format of MNIST and its relatives.
 *
 *     0 0 type rank | rank sizes, 32 bits, big end first | numbers, the last index moving fastest
 *
 * Taken are bytes (type 8): pictures of rank 3 [n,28,28] and labels of rank 1 [n].
 */
#include "data/images_int.h"

enum { BYTES = 8, HEAD_MOST = 16 };

size_t idx_head_len(bool pictures)
{
    return pictures ? 16 : 8;
}

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

co_err idx_head(packed *p, bool pictures, uint32_t *n)
{
    uint8_t h[HEAD_MOST];
    size_t len = idx_head_len(pictures), got;
    const char *what = pictures ? "pictures" : "labels";
    uint8_t rank = pictures ? 3 : 1;

    CO_TRY(packed_read(p, h, len, &got));
    if (got < len)
        return co_fail(CO_EINPUT, "%s: %zu bytes, shorter than its head of %zu: is the download complete?",
                       packed_path(p), got, len);
    if (h[0] || h[1] || h[2] != BYTES || h[3] != rank)
        return co_fail(CO_EINPUT,
                       "%s begins with %02x%02x%02x%02x, an idx file of %s with 0000080%d: is it the"
                       " right file?",
                       packed_path(p), h[0], h[1], h[2], h[3], what, rank);
    uint32_t count = big_endian(h + 4);
    if (count < 1 || count > IDX_MOST)
        return co_fail(CO_EINPUT, "%s claims %u %s; 1 to %d are taken", packed_path(p), count, what, IDX_MOST);
    if (pictures && (big_endian(h + 8) != IDX_SIDE || big_endian(h + 12) != IDX_SIDE))
        return co_fail(CO_EINPUT, "%s has pictures of %ux%u, not 28x28", packed_path(p), big_endian(h + 8),
                       big_endian(h + 12));
    *n = count;
    return CO_OK;
}
