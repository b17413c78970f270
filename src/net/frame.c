/* frame.c -- the head of a frame, 32 bytes, little-endian:
 *
 *     0  magic "COHF"     4  version 2     5  type     6  flags (16 bits)     8  length of the body (32)
 *    12  view (32)       16  run (64)     24  step (64)
 *
 * The parser reads only the bytes it has. It refuses a wrong magic at its first wrong byte, and a length
 * above the limit before anybody allocates memory for it.
 */
#include "net/net.h"

#include <string.h>

#include "base/bytes.h"

static const uint8_t magic[4] = {'C', 'O', 'H', 'F'};
enum { VERSION = 2 };

void co_frame_head(uint8_t out[CO_FRAME_HEAD], const co_frame *f)
{
    memcpy(out, magic, sizeof magic);
    out[4] = VERSION;
    out[5] = f->type;
    co_le_put(out + 6, f->flags, 2);
    co_le_put(out + 8, f->len, 4);
    co_le_put(out + 12, f->view, 4);
    co_le_put(out + 16, f->run, 8);
    co_le_put(out + 24, f->step, 8);
}

co_err co_frame_parse(co_frame *out, size_t *used, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    *used = 0;
    if (len && memcmp(at, magic, len < sizeof magic ? len : sizeof magic) != 0)
        return co_fail(CO_EFORMAT, "not a frame: it begins with byte 0x%02x", at[0]);
    if (len > 4 && at[4] != VERSION)
        return co_fail(CO_EFORMAT, "the frame has version %d, this program uses version %d", at[4], VERSION);
    if (len < CO_FRAME_HEAD)
        return CO_OK;
    uint64_t body = co_le_get(at + 8, 4);
    if (body > CO_FRAME_MOST)
        return co_fail(CO_EFORMAT, "the frame has %llu bytes, the limit is %d", (unsigned long long)body,
                       CO_FRAME_MOST);
    if (len - CO_FRAME_HEAD < body)
        return CO_OK;
    *out = (co_frame){.type = at[5],
                      .flags = (uint16_t)co_le_get(at + 6, 2),
                      .len = (uint32_t)body,
                      .view = (uint32_t)co_le_get(at + 12, 4),
                      .run = co_le_get(at + 16, 8),
                      .step = co_le_get(at + 24, 8),
                      .body = at + CO_FRAME_HEAD};
    *used = CO_FRAME_HEAD + (size_t)body;
    return CO_OK;
}
