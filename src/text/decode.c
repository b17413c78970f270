/* decode.c -- tokens to text. A row per decoder: what it adds for one token, and whether it is the first
 * or last. */
#include "text/text_int.h"

#include <string.h>

/* No decoder: words with a blank between them. */
static void add_word(co_str *out, const co_tokenizer *t, const char *token, bool first, bool last)
{
    co_str_add(out, first ? "" : " ");
    co_str_add(out, token);
}

/* Letters back to bytes. A token with a character that stands for no byte gives its own bytes. */
static void add_bytes(co_str *out, const co_tokenizer *t, const char *token, bool first, bool last)
{
    const char *end = token + strlen(token);
    size_t before = out->len;
    int n;

    for (const char *at = token; at < end; at += n) {
        int byte = letter_byte(code_at(at, end, &n));
        char c = (char)byte;
        if (byte < 0) {
            out->len = before;
            co_str_addn(out, token, (size_t)(end - token));
            return;
        }
        co_str_addn(out, &c, 1);
    }
}

/* The suffix that ends a word becomes a blank, but not at the end of the text. */
static void add_suffixed(co_str *out, const co_tokenizer *t, const char *token, bool first, bool last)
{
    size_t len = strlen(t->decode_suffix);

    for (const char *found; len && (found = strstr(token, t->decode_suffix)); token = found + len) {
        co_str_addn(out, token, (size_t)(found - token));
        co_str_add(out, last ? "" : " ");
    }
    co_str_add(out, token);
}

typedef void (*add_token)(co_str *out, const co_tokenizer *t, const char *token, bool first, bool last);
static const add_token adds[] = {
    [DECODE_BLANKS] = add_word,
    [DECODE_BYTES] = add_bytes,
    [DECODE_SUFFIX] = add_suffixed,
};

static bool is_said(const co_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->size && t->token[id] && !t->special[id];
}

void co_tokenizer_decode(const co_tokenizer *t, const int32_t *id, size_t n, co_str *out)
{
    co_str raw = {0};
    bool first = true;

    while (n > 0 && !is_said(t, id[n - 1]))
        n--;
    for (size_t i = 0; i < n; i++)
        if (is_said(t, id[i])) {
            adds[t->decode](&raw, t, t->token[id[i]], first, i + 1 == n);
            first = false;
        }
    add_as_utf8(out, co_str_text(&raw), raw.len);
    out->failed |= raw.failed;
    co_str_fini(&raw);
}
