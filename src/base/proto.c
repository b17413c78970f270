/* proto.c -- protocol buffers by hand: varints, fixed numbers, and fields that carry their length. */
#include "base/proto.h"

#include <string.h>

#include "base/bytes.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, VARINT_MOST = 10 };

static size_t varint(uint8_t out[VARINT_MOST], uint64_t x)
{
    size_t n = 0;

    for (; x >= 0x80; x >>= 7)
        out[n++] = (uint8_t)(x | 0x80);
    out[n++] = (uint8_t)x;
    return n;
}

static void add_varint(co_str *s, uint64_t x)
{
    uint8_t bytes[VARINT_MOST];

    co_str_addn(s, (const char *)bytes, varint(bytes, x));
}

static void add_tag(co_str *s, int field, int type)
{
    add_varint(s, (uint64_t)field << 3 | (uint64_t)type);
}

static void add_fixed(co_str *s, uint64_t bits, int n)
{
    uint8_t bytes[8];

    co_le_put(bytes, bits, n);
    co_str_addn(s, (const char *)bytes, (size_t)n);
}

static uint64_t bits_of(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void co_proto_choice(co_str *s, int field, int64_t x)
{
    add_tag(s, field, VARINT);
    add_varint(s, (uint64_t)x);
}

void co_proto_int(co_str *s, int field, int64_t x)
{
    if (x != 0)
        co_proto_choice(s, field, x);
}

void co_proto_f32(co_str *s, int field, float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    add_tag(s, field, FIXED32);
    add_fixed(s, bits, 4);
}

void co_proto_f64(co_str *s, int field, double x)
{
    add_tag(s, field, FIXED64);
    add_fixed(s, bits_of(x), 8);
}

void co_proto_f64s(co_str *s, int field, const double *x, size_t n)
{
    add_tag(s, field, BYTES);
    add_varint(s, 8 * n);
    for (size_t i = 0; i < n; i++)
        add_fixed(s, bits_of(x[i]), 8);
}

void co_proto_text_n(co_str *s, int field, const char *text, size_t len)
{
    add_tag(s, field, BYTES);
    add_varint(s, len);
    co_str_addn(s, text, len);
}

void co_proto_text(co_str *s, int field, const char *text)
{
    if (text && *text)
        co_proto_text_n(s, field, text, strlen(text));
}

size_t co_proto_begin(co_str *s, int field)
{
    add_tag(s, field, BYTES);
    return s->len;
}

/* The length goes before the bytes, which move up by its size. */
void co_proto_end(co_str *s, size_t at)
{
    uint8_t head[VARINT_MOST];
    size_t len = s->len - at, n = varint(head, len);

    co_str_addn(s, (const char *)head, n);
    if (s->failed)
        return;
    memmove(s->p + at + n, s->p + at, len);
    memcpy(s->p + at, head, n);
}

void co_proto_time(co_str *s, int field, double wall_s)
{
    int64_t seconds = (int64_t)wall_s, nanos = (int64_t)((wall_s - (double)seconds) * 1e9);
    size_t at = co_proto_begin(s, field);

    co_proto_int(s, 1, seconds);
    co_proto_int(s, 2, nanos);
    co_proto_end(s, at);
}
