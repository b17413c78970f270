/* proto.c -- the wire format of Protocol Buffers, as far as it is written here: varints, fixed numbers, and bytes
 * with a length before them. Memory that runs out makes the string sticky (base/str.h). */
#include "track/proto_int.h"

#include <string.h>

#include "base/bytes.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

void proto_varint(co_str *out, uint64_t x)
{
    char bytes[10];
    size_t n = 0;

    do {
        bytes[n++] = (char)((x & 127) | (x > 127 ? 128 : 0));
        x >>= 7;
    } while (x);
    co_str_addn(out, bytes, n);
}

static void key(co_str *out, int field, enum wire wire)
{
    proto_varint(out, (uint64_t)field << 3 | wire);
}

static void fixed(co_str *out, int field, enum wire wire, uint64_t bits, int n)
{
    uint8_t bytes[8];

    key(out, field, wire);
    co_le_put(bytes, bits, n);
    co_str_addn(out, (const char *)bytes, (size_t)n);
}

void proto_int(co_str *out, int field, int64_t x)
{
    key(out, field, VARINT);
    proto_varint(out, (uint64_t)x);
}

void proto_f64(co_str *out, int field, double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    fixed(out, field, FIXED64, bits, 8);
}

void proto_f32(co_str *out, int field, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    fixed(out, field, FIXED32, bits, 4);
}

void proto_bytes(co_str *out, int field, const void *bytes, size_t len)
{
    key(out, field, BYTES);
    proto_varint(out, len);
    co_str_addn(out, bytes, len);
}

void proto_text(co_str *out, int field, const char *text)
{
    proto_bytes(out, field, text, strlen(text));
}

void proto_f64s(co_str *out, int field, const double *x, size_t n)
{
    key(out, field, BYTES);
    proto_varint(out, 8 * n);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        uint8_t bytes[8];
        memcpy(&bits, &x[i], sizeof bits);
        co_le_put(bytes, bits, 8);
        co_str_addn(out, (const char *)bytes, 8);
    }
}

void proto_sub(co_str *out, int field, co_str *message)
{
    proto_bytes(out, field, co_str_text(message), message->len);
    out->failed |= message->failed;
    co_str_clear(message);
}
