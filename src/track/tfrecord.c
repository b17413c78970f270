/* tfrecord.c -- CRC-32C by a table of 256, and the frames around it. */
#include "track/tfrecord_int.h"

#include "base/bytes.h"

enum { HEAD = 12, TAIL = 4 };

/* table[i]: the remainder of the byte i, reflected; polynomial 0x1EDC6F41. */
static void fill_table(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++)
            rest = rest & 1 ? rest >> 1 ^ 0x82F63B78u : rest >> 1;
        table[i] = rest;
    }
}

uint32_t tf_crc32c(const void *bytes, size_t len)
{
    static uint32_t table[256];
    const uint8_t *at = bytes;
    uint32_t sum = 0xFFFFFFFFu;

    if (!table[1])
        fill_table(table);
    for (size_t i = 0; i < len; i++)
        sum = table[(sum ^ at[i]) & 255] ^ sum >> 8;
    return sum ^ 0xFFFFFFFFu;
}

/* A sum over data that has sums in it would be weak; so they are stored changed. */
static uint32_t masked(const void *bytes, size_t len)
{
    uint32_t sum = tf_crc32c(bytes, len);

    return (sum >> 15 | sum << 17) + 0xA282EAD8u;
}

void tfrecord_add(co_str *out, const void *payload, size_t len)
{
    uint8_t head[HEAD], tail[TAIL];

    co_le_put(head, len, 8);
    co_le_put(head + 8, masked(head, 8), 4);
    co_le_put(tail, masked(payload, len), TAIL);
    co_str_addn(out, (const char *)head, sizeof head);
    co_str_addn(out, payload, len);
    co_str_addn(out, (const char *)tail, sizeof tail);
}

size_t tfrecord_get(const char **payload, size_t *payload_len, const char *bytes, size_t len)
{
    const uint8_t *head = (const uint8_t *)bytes;

    if (len < HEAD + TAIL || co_le_get(head + 8, 4) != masked(head, 8))
        return 0;
    uint64_t n = co_le_get(head, 8);
    if (n > TFRECORD_MOST || n > len - HEAD - TAIL ||
        co_le_get(head + HEAD + n, TAIL) != masked(head + HEAD, n))
        return 0;
    *payload = bytes + HEAD;
    *payload_len = n;
    return HEAD + n + TAIL;
}
