/* cut.c -- pre-tokenisers: text is cut into pieces, and each piece goes on to the next cutter, then to the
 * model.
 *
 *     CUT_WORDS    Whitespace        \w+|[^\w\s]+
 *     CUT_SPACES   WhitespaceSplit   \S+
 *     CUT_BYTES    ByteLevel         's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *                                    then each byte becomes a printable letter
 */
#include "text/text_int.h"

#include <string.h>

/* --- Whitespace and WhitespaceSplit ------------------------------------------------------------------- */

/* 0: white space, 1: a word character, 2: any other. */
static int word_class(uint32_t code)
{
    return code_is_space(code) ? 0 : code_is_word(code) ? 1 : 2;
}

static int space_class(uint32_t code)
{
    return !code_is_space(code);
}

/* Gives each longest run of one class other than 0. */
static void each_run(const char *text, size_t len, int (*class_of)(uint32_t), take_piece take, void *ctx)
{
    const char *end = text + len, *from = text;
    int class = 0, n;

    for (const char *at = text; at < end; at += n) {
        int now = class_of(code_at(at, end, &n));
        if (now != class && class)
            take(ctx, from, (size_t)(at - from));
        if (now != class)
            from = at;
        class = now;
    }
    if (class)
        take(ctx, from, (size_t)(end - from));
}

void each_word(const char *text, size_t len, take_piece take, void *ctx)
{
    each_run(text, len, word_class, take, ctx);
}

/* --- ByteLevel ---------------------------------------------------------------------------------------- */

static bool is_plain(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/* Bytes that are printable as Latin-1 stand for themselves; the others are numbered from 256 on. */
uint32_t byte_letter(uint8_t byte)
{
    uint32_t letter = 256;

    if (is_plain(byte))
        return byte;
    for (unsigned b = 0; b < byte; b++)
        letter += !is_plain(b);
    return letter;
}

int letter_byte(uint32_t code)
{
    if (code < 256)
        return is_plain(code) ? (int)code : -1;
    uint32_t letter = 256;
    for (unsigned b = 0; b < 256; b++)
        if (!is_plain(b) && letter++ == code)
            return (int)b;
    return -1;
}

/* 0: white space, 1: a letter, 2: a number, 3: any other. */
static int level_class(uint32_t code)
{
    return code_is_space(code) ? 0 : code_is_letter(code) ? 1 : code_is_number(code) ? 2 : 3;
}

static size_t contraction_len(const char *at, size_t len)
{
    static const char *const known[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

    for (size_t i = 0; i < CO_COUNT(known); i++)
        if (strlen(known[i]) <= len && memcmp(at, known[i], strlen(known[i])) == 0)
            return strlen(known[i]);
    return 0;
}

/* Where the run of white space at `at` ends; *last: where its last code point begins. */
static const char *space_run(const char *at, const char *end, const char **last)
{
    int n;

    *last = at;
    for (; at < end && code_is_space(code_at(at, end, &n)); at += n)
        *last = at;
    return at;
}

/* Length of the piece of GPT-2's expression that begins at `at`. */
static size_t level_piece(const char *at, const char *end)
{
    size_t len = contraction_len(at, (size_t)(end - at));
    const char *from = at + (*at == ' ' && end - at > 1), *last;
    int n, class = level_class(code_at(from, end, &n));

    if (len)
        return len;
    /* Two blanks, or one that is not ' ': all but the last, unless the text ends with them. */
    if (class == 0) {
        const char *stop = space_run(at, end, &last);
        return (size_t)((stop == end || last == at ? stop : last) - at);
    }
    while (from < end && level_class(code_at(from, end, &n)) == class)
        from += n;
    return (size_t)(from - at);
}

static void take_level(encoding *e, int level, const char *text, size_t len, co_str *letters)
{
    char out[4];

    co_str_clear(letters);
    for (size_t i = 0; i < len; i++)
        co_str_addn(letters, out, (size_t)co_utf8_put(out, byte_letter((uint8_t)text[i])));
    if (!e->err)
        e->err = co_str_err(letters);
    cut_text(e, level + 1, co_str_text(letters), letters->len);
}

static void cut_levels(encoding *e, int level, const char *text, size_t len)
{
    const cutter *how = &e->t->cut[level];
    co_str whole = {0}, letters = {0};

    if (how->prefix && len && text[0] != ' ')
        co_str_add(&whole, " ");
    co_str_addn(&whole, text, len);
    if (!e->err)
        e->err = co_str_err(&whole);
    const char *at = co_str_text(&whole), *end = at + whole.len;
    for (size_t n; at < end && !e->err; at += n) {
        n = how->regex ? level_piece(at, end) : (size_t)(end - at);
        take_level(e, level, at, n, &letters);
    }
    co_str_fini(&whole);
    co_str_fini(&letters);
}

/* --- all of them -------------------------------------------------------------------------------------- */
struct next_cut {
    encoding *e;
    int level;
};

static void take_next(void *ctx, const char *text, size_t len)
{
    struct next_cut *next = ctx;

    cut_text(next->e, next->level, text, len);
}

void cut_text(encoding *e, int level, const char *text, size_t len)
{
    struct next_cut next = {e, level + 1};

    if (e->err || len == 0)
        return;
    if (level == e->t->n_cuts)
        encode_piece(e, text, len);
    else if (e->t->cut[level].kind == CUT_BYTES)
        cut_levels(e, level, text, len);
    else
        each_run(text, len, e->t->cut[level].kind == CUT_WORDS ? word_class : space_class, take_next, &next);
}
