/* text.c -- any UTF-8 file, one character at a time: the line so far in, the next character out.
 *
 * A sample is a line: its characters and a newline as the sign of its end, L in all. A file's last line need
 * not have one; CR before LF, a byte order mark and empty lines are dropped. A line with more than max_len is
 * cut into pieces of max_len, samples of their own, of which only the last has the newline.
 *
 *     "so\n"    x = [0, s, o]    y = [s, o, \n]    length 3
 *
 * Tokens: 0 begins every sample, then the distinct code points of the file, rising.
 *
 * Invariants: the file is read once, checked to be UTF-8 without NULs and never read again, so it may change
 * on disk; a piece lies within one line. In memory stand the file, 12 bytes per sample, and a table from code
 * point to token of which only the pages in use are real. fill decodes on the way: some 10 ns a character.
 */
#include "data/text_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "data/file_int.h"

enum { MAX_BYTES = 1 << 30 };

struct text_cfg {
    char *path;
    int64_t max_len;
    double val_fraction;
};

static const co_option options[] = {
    {"path", CO_OPT_STR, offsetof(struct text_cfg, path), "null", "a UTF-8 text file; each line is a sample",
     .alias = "data.file", .path = true},
    {"max_len", CO_OPT_INT, offsetof(struct text_cfg, max_len), "64",
     "longest sample in characters; longer lines are cut", .min = 2, .max = 65536},
    {"val_fraction", CO_OPT_FLOAT, offsetof(struct text_cfg, val_fraction), "0.1",
     "part of the samples to validate on, and again to test on; at least one each", .min = 0, .max = 0.45},
    {0},
};

/* --- giving out samples --------------------------------------------------------------------------------- */

static const struct piece *piece_of(const struct text *t, co_split s, uint32_t id)
{
    return &t->pieces[t->place[split_start(&t->base, s) + id]];
}

static int length(const co_dataset *d, co_split s, uint32_t id)
{
    return (int)piece_of((const struct text *)d, s, id)->len;
}

/* x and y of one piece, either may be NULL: x is y one place later. */
static void fill_piece(const struct text *t, const struct piece *piece, int32_t *x, int32_t *y)
{
    const char *p = t->bytes + piece->start, *end = t->bytes + t->n_bytes;
    int own = (int)piece->len;
    int32_t before = 0;

    for (int i = 0; i < own; i++) {
        uint32_t code = '\n';
        if (i < own - (int)piece->ends)
            p += co_utf8_get(&code, p, (size_t)(end - p));
        int32_t token = t->token_of[code];
        if (x)
            x[i] = before;
        if (y)
            y[i] = token;
        before = token;
    }
}

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct text *t = (const struct text *)d;

    for (int i = 0; i < shape.n; i++) {
        const struct piece *piece = piece_of(t, s, id[i]);
        if (dst->x || dst->y)
            fill_piece(t, piece, dst->x ? (int32_t *)dst->x + dst->offsets[i] : NULL,
                       dst->y ? (int32_t *)dst->y + dst->offsets[i] : NULL);
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    return 0;
}

/* Begin and what is to be ignored have no text. */
static void decode(const co_dataset *d, const int32_t *tokens, int n, co_str *out)
{
    const struct text *t = (const struct text *)d;

    for (int i = 0; i < n; i++) {
        char c[4];
        if (tokens[i] > 0 && tokens[i] < d->io.classes)
            co_str_addn(out, c, (size_t)co_utf8_put(c, t->code_of[tokens[i]]));
    }
}

/* --- opening -------------------------------------------------------------------------------------------- */

static co_err read_text(struct text *t, const char *path)
{
    struct stat st;

    if (!path || !*path)
        return co_fail(CO_EINPUT, "data=text needs data.path=FILE (any UTF-8 text)");
    co_err err = file_check_regular(path);
    if (err)
        return co_fail_in(err, "data.path");
    if (stat(path, &st) == 0 && st.st_size > MAX_BYTES)
        return co_fail(CO_EINPUT,
                       "data.path: %s has %lld bytes; text of more than 1 GiB (%d) is not taken:"
                       " give a part of it",
                       path, (long long)st.st_size, (int)MAX_BYTES);
    err = co_fs_read(&t->bytes, &t->n_bytes, path, MAX_BYTES);
    if (err)
        return co_fail_in(err == CO_ENOMEM ? err : CO_EINPUT, "data.path");
    if (t->n_bytes == 0)
        return co_fail(CO_EINPUT, "data.path: %s is empty", path);
    const char *end = t->bytes + t->n_bytes;
    for (const char *p = t->bytes; p < end;) {
        uint32_t code;
        int n = co_utf8_get(&code, p, (size_t)(end - p));
        if (n == 0)
            return co_fail(
                CO_EINPUT,
                "data.path: %s is not UTF-8: byte 0x%02x at offset %zu (iconv -f LATIN1 -t UTF-8 may"
                " help)",
                path, (uint8_t)*p, (size_t)(p - t->bytes));
        if (code == 0)
            return co_fail(CO_EINPUT, "data.path: %s is not text: a NUL byte at offset %zu", path,
                           (size_t)(p - t->bytes));
        p += n;
    }
    return CO_OK;
}

/* Cuts the line [p, end) into pieces. `out` may be NULL, to count. Marks code points in token_of. */
static uint32_t cut_line(struct text *t, const char *p, const char *end, struct piece *out)
{
    uint32_t n = 0;

    for (bool ends = false; !ends; n++) {
        uint32_t start = (uint32_t)(p - t->bytes), code;
        int len = 0;
        for (; len < t->max_len && p < end; len++) {
            p += co_utf8_get(&code, p, (size_t)(end - p));
            t->token_of[code] = 1;
        }
        ends = len < t->max_len;
        if (out)
            out[n] = (struct piece){start, (uint32_t)len + ends, ends};
    }
    return n;
}

static uint32_t cut(struct text *t, struct piece *out)
{
    const char *p = t->bytes, *end = p + t->n_bytes;
    uint32_t n = 0;

    if (t->n_bytes >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
        p += 3;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        const char *next = newline ? newline + 1 : end;
        if (newline && stop > p && stop[-1] == '\r')
            stop--;
        if (stop > p)
            n += cut_line(t, p, stop, out ? out + n : NULL);
        p = next;
    }
    return n;
}

co_err text_number_tokens(struct text *t)
{
    int32_t classes = 1;

    t->token_of['\n'] = 1;
    for (uint32_t c = 0; c < CO_CODE_POINTS; c++)
        if (t->token_of[c])
            t->token_of[c] = classes++;
    t->code_of = co_array((size_t)classes, sizeof *t->code_of);
    if (!t->code_of)
        return CO_ENOMEM;
    for (uint32_t c = 0; c < CO_CODE_POINTS; c++)
        if (t->token_of[c])
            t->code_of[t->token_of[c]] = c;
    t->base.io.classes = classes;
    return CO_OK;
}

static co_err cut_and_split(struct text *t, const struct text_cfg *c)
{
    uint32_t n = cut(t, NULL);
    if (n < 3)
        return co_fail(
            CO_EINPUT,
            "data.path: %s has %u line%s of text; at least 3 are needed, to train, to validate and to"
            " test",
            c->path, n, n == 1 ? "" : "s");
    t->pieces = co_array(n, sizeof *t->pieces);
    t->place = t->pieces ? co_array(n, sizeof *t->place) : NULL;
    if (!t->place)
        return CO_ENOMEM;
    cut(t, t->pieces);
    CO_TRY(text_number_tokens(t));
    split_permute(t->place, n);
    uint32_t held_out = (uint32_t)((double)n * c->val_fraction);
    held_out = held_out ? held_out : 1;
    t->base.count[CO_SPLIT_TRAIN] = n - 2 * held_out;
    t->base.count[CO_SPLIT_VAL] = t->base.count[CO_SPLIT_TEST] = held_out;
    return CO_OK;
}

static void fingerprint(struct text *t, const struct text_cfg *c)
{
    char says[96];
    co_sha256 h;

    snprintf(says, sizeof says, "text 1 max_len=%d val_fraction=%.17g\n", t->max_len, c->val_fraction);
    co_sha256_init(&h);
    co_sha256_add(&h, says, strlen(says));
    co_sha256_add(&h, t->bytes, t->n_bytes);
    co_sha256_hex(&h, t->base.fingerprint);
}

static void close_text(co_dataset *d)
{
    struct text *t = (struct text *)d;

    co_free(t->bytes);
    co_free(t->pieces);
    co_free(t->place);
    co_free(t->token_of);
    co_free(t->code_of);
    co_free(t);
}

struct text *text_new(int max_len)
{
    struct text *t = co_zalloc(sizeof *t);

    if (!t)
        return NULL;
    t->max_len = max_len;
    t->base = (co_dataset){
        .io = {.task = CO_TASK_LM, .x = CO_SCALAR, .max_len = max_len},
        .length = length,
        .fill = fill,
        .decode = decode,
        .vocabulary = text_vocabulary,
        .close = close_text,
    };
    if ((t->token_of = co_array(CO_CODE_POINTS, sizeof *t->token_of)))
        return t;
    co_free(t);
    return NULL;
}

static co_err open_text(co_dataset **out, const void *cfg)
{
    const struct text_cfg *c = cfg;
    struct text *t = text_new((int)c->max_len);

    if (!t)
        return CO_ENOMEM;
    co_err err = read_text(t, c->path);
    if (!err)
        err = cut_and_split(t, c);
    if (err) {
        close_text(&t->base);
        return err;
    }
    fingerprint(t, c);
    *out = &t->base;
    return CO_OK;
}

const co_dataset_def text_def = {
    .name = "text",
    .help = "any UTF-8 file, a sample per line, a token per character",
    .options = options,
    .cfg_size = sizeof(struct text_cfg),
    .open = open_text,
    .open_vocabulary = text_open_vocabulary,
};
