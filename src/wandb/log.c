/* log.c -- the transaction log run-ID.wandb: LevelDB's log format, as wandb reads it.
 *
 * A head of 7 bytes, then chunks in blocks of 32 KiB that are counted from the head of the file:
 *
 *     u32 CRC-32 (zlib's) of type and data | u16 length | u8 type | data
 *
 * A record is one chunk (type 1), or first (2), middle (3) ..., last (4) where it crosses blocks. Less than
 * 7 bytes at the end of a block are zeros. All numbers are little-endian.
 */
#include "wandb/wandb_int.h"

#include <string.h>
#include <zlib.h>

#include "base/bytes.h"

enum { BLOCK = 32768, HEAD = 7, FULL = 1, FIRST = 2, MIDDLE = 3, LAST = 4 };

static size_t place(const spool *sp)
{
    return (size_t)((atomic_load(&sp->written) + sp->pending.len) % BLOCK);
}

void log_head(spool *sp)
{
    static const char head[HEAD] = {':', 'W', '&', 'B', (char)0xe1, (char)0xbe, 0};

    co_str_addn(&sp->pending, head, HEAD);
}

static void add_chunk(spool *sp, int type, const char *data, size_t len)
{
    uint8_t head[HEAD];
    uint8_t kind = (uint8_t)type;
    uLong crc = crc32(crc32(0, NULL, 0), &kind, 1);

    if (len) /* zlib takes a NULL for the beginning of a new sum */
        crc = crc32(crc, (const Bytef *)data, (uInt)len);
    co_le_put(head, crc, 4);
    co_le_put(head + 4, len, 2);
    head[6] = kind;
    co_str_addn(&sp->pending, (const char *)head, HEAD);
    co_str_addn(&sp->pending, data, len);
}

void log_record(spool *sp, const char *data, size_t len)
{
    static const char zeros[HEAD] = {0};

    for (bool first = true;; first = false) {
        size_t room = BLOCK - place(sp);
        if (room < HEAD) {
            co_str_addn(&sp->pending, zeros, room);
            room = BLOCK;
        }
        size_t n = len < room - HEAD ? len : room - HEAD;
        bool last = n == len;
        add_chunk(sp, first && last ? FULL : first ? FIRST : last ? LAST : MIDDLE, data, n);
        if (last || sp->pending.failed)
            return;
        data += n;
        len -= n;
    }
}
