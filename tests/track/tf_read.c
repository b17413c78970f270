/* tf_read.c -- see tf_read.h. */
#include "tf_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "track_test.h"

struct shown {
    long long step;
    char tag[128], value[64];
};
struct show {
    struct shown *list;
    size_t n;
    int twice;
};

static uint32_t plain_crc32c(const uint8_t *at, size_t len) /* bit by bit */
{
    uint32_t sum = 0xFFFFFFFFu;
    for (size_t i = 0; i < len; i++) {
        sum ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum & 1 ? sum >> 1 ^ 0x82F63B78u : sum >> 1;
    }
    return ~sum;
}

static uint64_t le(const uint8_t *at, int n)
{
    uint64_t x = 0;
    for (int i = n; i-- > 0;)
        x = x << 8 | at[i];
    return x;
}

static bool sum_is_right(const uint8_t *at, size_t len, const uint8_t *sum)
{
    uint32_t c = plain_crc32c(at, len);
    return (uint32_t)((c >> 15 | c << 17) + 0xA282EAD8u) == le(sum, 4);
}

struct field {
    int number, wire;
    uint64_t bits;
    const uint8_t *at;
    size_t len;
};

static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t x = 0;
    for (int shift = 0; *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        x |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return x;
    }
    CHECK(false, "a varint is cut");
    return 0;
}

static bool next_field(struct field *f, const uint8_t **at, const uint8_t *end)
{
    if (*at >= end)
        return false;
    uint64_t key = varint(at, end);
    *f = (struct field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    f->len = f->wire == 1 ? 8 : f->wire == 5 ? 4 : 0;
    if (f->wire == 0 || f->wire == 2)
        f->bits = varint(at, end);
    if (f->wire == 2)
        f->len = f->bits;
    CHECK((size_t)(end - *at) >= f->len, "field %d is cut", f->number);
    f->at = *at;
    if (f->wire == 1 || f->wire == 5)
        f->bits = le(*at, (int)f->len);
    *at += f->len;
    return true;
}

static void show(struct show *s, long long step, const char *tag, const char *value)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].step == step && strcmp(s->list[i].tag, tag) == 0) {
            snprintf(s->list[i].value, sizeof s->list[i].value, "%s", value);
            s->twice++;
            return;
        }
    s->list = realloc(s->list, (s->n + 1) * sizeof *s->list);
    struct shown *new = &s->list[s->n++];
    new->step = step;
    snprintf(new->tag, sizeof new->tag, "%s", tag);
    snprintf(new->value, sizeof new->value, "%s", value);
}

static void show_value(struct show *s, long long step, struct field value)
{
    const uint8_t *at = value.at, *end = at + value.len;
    char tag[128] = "", text[64] = "";
    struct field f;
    while (next_field(&f, &at, end)) {
        float x;
        uint32_t bits = (uint32_t)f.bits;
        memcpy(&x, &bits, sizeof x);
        if (f.number == 1)
            snprintf(tag, sizeof tag, "%.*s", (int)f.len, (const char *)f.at);
        else if (f.number == 2)
            snprintf(text, sizeof text, "%.9g", (double)x);
        else if (f.number == 9)
            snprintf(text, sizeof text, "%s", memmem(f.at, f.len, "hparams", 7) ? "hparams" : "text");
        else
            snprintf(text, sizeof text, "%s", f.number == 4 ? "image" : f.number == 5 ? "histogram" : "text");
    }
    show(s, step, tag, text);
}

static void purge(struct show *s, long long step)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].step < step)
            s->list[kept++] = s->list[i];
    s->n = kept;
}

static void show_event(struct show *s, const uint8_t *at, size_t len)
{
    const uint8_t *end = at + len;
    long long step = 0;
    struct field f, inner;
    while (next_field(&f, &at, end)) {
        if (f.number == 2)
            step = (long long)f.bits;
        bool message = f.number == 5 || f.number == 7;
        for (const uint8_t *in = f.at, *stop = in + f.len; message && next_field(&inner, &in, stop);) {
            if (f.number == 5)
                show_value(s, step, inner);
            else if (inner.number == 1 && inner.bits == 1)
                purge(s, step);
        }
    }
}

static void show_file(struct show *s, const char *path)
{
    char *bytes;
    size_t len;
    CHECK_OK(co_fs_read(&bytes, &len, path, 1 << 28));
    const uint8_t *at = (const uint8_t *)bytes, *end = at + len;
    while (end - at >= 16) {
        uint64_t n = le(at, 8);
        CHECK(sum_is_right(at, 8, at + 8), "%s: the sum of a length", path);
        if ((uint64_t)(end - at) < n + 16)
            break; /* cut */
        CHECK(sum_is_right(at + 12, n, at + 12 + n), "%s: the sum of a payload", path);
        show_event(s, at + 12, n);
        at += n + 16;
    }
    co_free(bytes);
}

char *tf_shows(const char *folder, int *twice)
{
    struct show s = {0};
    char **names = NULL;
    size_t n = 0;
    co_str text = {0};
    if (co_fs_is_dir(folder))
        CHECK_OK(co_fs_list(&names, &n, folder));
    for (size_t i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        show_file(&s, path);
    }
    for (size_t i = 0; i < s.n; i++)
        co_str_addf(&text, "%lld %s %s\n", s.list[i].step, s.list[i].tag, s.list[i].value);
    if (twice)
        *twice = s.twice;
    free(s.list);
    if (names)
        co_fs_list_free(names, n);
    char *out = strdup(co_str_text(&text));
    co_str_fini(&text);
    return out;
}

char *tf_shows_run(const char *run)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s/tensorboard", run);
    return tf_shows(folder, NULL);
}
