/* encode.c -- text to tokens.
 *
 *     text -> added tokens taken out -> normaliser -> late added tokens taken out -> cutters -> model
 *
 * Added tokens are looked for from left to right, the longest first. What stands between them goes on.
 */
#include "text/text_int.h"

#include <string.h>

void push_token(encoding *e, int32_t id)
{
    co_tokens *out = e->out;

    if (out->n == out->room) {
        size_t room = out->room ? 2 * out->room : 32;
        int32_t *more = co_realloc(out->id, room * sizeof *more);
        if (!more) {
            e->err = CO_ENOMEM;
            return;
        }
        out->id = more;
        out->room = room;
    }
    out->id[out->n++] = id;
}

void co_tokens_fini(co_tokens *t)
{
    co_free(t->id);
    *t = (co_tokens){0};
}

void encode_piece(encoding *e, const char *text, size_t len)
{
    if (e->t->model == MODEL_BPE) {
        encode_bpe(e, text, len);
        return;
    }
    const name_slot *slot = name_find(&e->t->vocab, text, len);
    push_token(e, slot ? (int32_t)slot->value : e->t->unknown);
}

/* The longest added token at `at`, of those that are looked for now. */
static const added_token *added_at(const co_tokenizer *t, bool late, const char *at, const char *end)
{
    const added_token *best = NULL;

    for (size_t i = 0; i < t->n_added; i++) {
        const added_token *a = &t->added[i];
        if (a->late == late && a->len <= (size_t)(end - at) && *at == *a->text &&
            memcmp(at, a->text, a->len) == 0 && (!best || a->len > best->len))
            best = a;
    }
    return best;
}

static void between_early(encoding *e, const char *text, size_t len);
static void between_late(encoding *e, const char *text, size_t len)
{
    cut_text(e, 0, text, len);
}

static void take_added(encoding *e, bool late, const char *text, size_t len)
{
    void (*between)(encoding *, const char *, size_t) = late ? between_late : between_early;
    const char *end = text + len, *from = text;

    for (const char *at = text; at < end && !e->err;) {
        const added_token *a = added_at(e->t, late, at, end);
        if (!a) {
            at++;
            continue;
        }
        if (at > from)
            between(e, from, (size_t)(at - from));
        push_token(e, a->id);
        from = at += a->len;
    }
    if (end > from && !e->err)
        between(e, from, (size_t)(end - from));
}

static void between_early(encoding *e, const char *text, size_t len)
{
    co_str low = {0};

    if (!e->t->lower) {
        take_added(e, true, text, len);
        return;
    }
    add_lower(&low, text, len);
    e->err = co_str_err(&low);
    if (!e->err)
        take_added(e, true, co_str_text(&low), low.len);
    co_str_fini(&low);
}

static co_err check_text(const char *text, size_t len)
{
    uint32_t code;

    if (len > CO_TEXT_LINE)
        return co_fail(CO_EINPUT, "a sentence of %zu bytes; the longest that is taken has %d", len,
                       (int)CO_TEXT_LINE);
    for (size_t at = 0; at < len;) {
        int n = co_utf8_get(&code, text + at, len - at);
        if (n == 0)
            return co_fail(CO_EINPUT, "the text is not UTF-8: byte 0x%02x at offset %zu", (uint8_t)text[at],
                           at);
        at += (size_t)n;
    }
    return CO_OK;
}

co_err co_tokenizer_encode(const co_tokenizer *t, co_tokens *out, const char *text, size_t len)
{
    encoding e = {.t = t, .out = out};

    CO_TRY(check_text(text, len));
    take_added(&e, false, text, len);
    return e.err;
}
