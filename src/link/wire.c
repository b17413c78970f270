/* wire.c -- the hello of a connection and the head of a message as bytes, little-endian:
 * docs/formats/wire.md. */
#include "link/tcp_int.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

static const uint8_t hello_magic[4] = {'C', 'O', 'H', 'B'}, head_magic[4] = {'C', 'O', 'H', 'M'};

void hello_write(uint8_t out[CO_STREAM_HELLO], const hello *h)
{
    memset(out, 0, CO_STREAM_HELLO);
    memcpy(out, hello_magic, sizeof hello_magic);
    co_le_put(out + 4, h->version, 4);
    co_le_put(out + 8, h->run, 8);
    co_le_put(out + 16, h->from, 4);
    co_le_put(out + 20, h->to, 4);
    co_le_put(out + 24, h->from_birth, 8);
    co_le_put(out + 32, h->to_birth, 8);
    co_le_put(out + 56, co_fnv1a64(out, 56), 8);
}

co_err hello_read(hello *out, const uint8_t bytes[CO_STREAM_HELLO])
{
    static const uint8_t zero[16];

    if (memcmp(bytes, hello_magic, sizeof hello_magic) != 0)
        return co_fail(CO_EFORMAT, "the greeting begins with byte 0x%02x, it is not cohort's", bytes[0]);
    *out = (hello){.version = (uint32_t)co_le_get(bytes + 4, 4),
                   .run = co_le_get(bytes + 8, 8),
                   .from = (uint32_t)co_le_get(bytes + 16, 4),
                   .to = (uint32_t)co_le_get(bytes + 20, 4),
                   .from_birth = co_le_get(bytes + 24, 8),
                   .to_birth = co_le_get(bytes + 32, 8)};
    if (out->version != HELLO_VERSION) /* the rest may mean anything */
        return CO_OK;
    if (memcmp(bytes + 40, zero, sizeof zero) != 0 || co_le_get(bytes + 56, 8) != co_fnv1a64(bytes, 56))
        return co_fail(CO_EFORMAT, "the greeting is damaged");
    return CO_OK;
}

void head_write(uint8_t out[LINK_HEAD], const co_tag *tag, uint32_t len)
{
    memcpy(out, head_magic, sizeof head_magic);
    co_le_put(out + 4, tag->view, 4);
    co_le_put(out + 8, tag->unit, 4);
    co_le_put(out + 12, tag->kind, 2);
    co_le_put(out + 14, tag->node, 2);
    co_le_put(out + 16, tag->chunk, 4);
    co_le_put(out + 20, len, 4);
    co_le_put(out + 24, co_fnv1a64(out, 24), 8);
}

co_err head_read(co_tag *tag, uint32_t *len, const uint8_t bytes[LINK_HEAD])
{
    uint64_t kind = co_le_get(bytes + 12, 2);

    if (memcmp(bytes, head_magic, sizeof head_magic) != 0 || co_le_get(bytes + 24, 8) != co_fnv1a64(bytes, 24))
        return co_fail(CO_EFORMAT, "sent what does not fit: not the head of a message");
    if (kind > CO_MSG_FED)
        return co_fail(CO_EFORMAT, "sent what does not fit: a message of kind %d", (int)kind);
    *tag = (co_tag){.view = (uint32_t)co_le_get(bytes + 4, 4),
                    .unit = (uint32_t)co_le_get(bytes + 8, 4),
                    .kind = (uint16_t)kind,
                    .node = (uint16_t)co_le_get(bytes + 14, 2),
                    .chunk = (uint32_t)co_le_get(bytes + 16, 4)};
    *len = (uint32_t)co_le_get(bytes + 20, 4);
    return CO_OK;
}
