/* translate_split.c -- translates the sentences of a split and scores the translations: BLEU, and the shares of
 * characters and words that are wrong (text/text.h). */
#include "base/alloc.h"
#include "text/text.h"
#include "train/evaluate_int.h"

struct scoring {
    const co_dataset *data;
    co_split split;
    const uint32_t *ids;
    co_str source, target;
    co_bleu bleu;
    co_error_rate cer, wer;
    co_err err;
    void (*each)(void *ctx, const co_translated *t);
    void *ctx;
};

static void score(void *ctx, int i, const co_translation *best)
{
    struct scoring *s = ctx;

    co_str_clear(&s->source);
    co_str_clear(&s->target);
    s->data->text(s->data, s->split, s->ids[i], CO_SIDE_SOURCE, &s->source);
    s->data->text(s->data, s->split, s->ids[i], CO_SIDE_TARGET, &s->target);
    const char *target = co_str_text(&s->target);
    if (!s->err && (co_str_err(&s->source) || co_str_err(&s->target)))
        s->err = CO_ENOMEM;
    if (!s->err)
        s->err = co_bleu_add(&s->bleu, best->text, target);
    if (!s->err)
        s->err = co_cer_add(&s->cer, best->text, target);
    if (!s->err)
        s->err = co_wer_add(&s->wer, best->text, target);
    if (!s->err && s->each)
        s->each(s->ctx, &(co_translated){s->ids[i], co_str_text(&s->source), target, best->text});
}

/* Reads the sources of some samples; `tokens` has room for all of them. */
static void read_sources(const co_dataset *d, co_split split, const uint32_t *ids, int n, int32_t *offsets,
                         int32_t *tokens, co_source *source)
{
    co_dataset_fill(d, split, ids, co_slice_of(d, split, ids, n), &(co_draw){0},
                    &(co_slice_dst){.x = tokens, .offsets = offsets, .room = n});
    for (int i = 0; i < n; i++)
        source[i] = (co_source){tokens + offsets[i], offsets[i + 1] - offsets[i]};
}

co_err co_translate_split(co_plan *plan, co_split split, int64_t limit, int beam, co_translation_scores *out,
                          void (*each)(void *ctx, const co_translated *t), void *ctx)
{
    enum { AT_ONCE = 64 };
    const co_dataset *d = plan->data;
    uint32_t n = d->count[split], ids[AT_ONCE];
    struct scoring s = {.data = d, .split = split, .ids = ids, .each = each, .ctx = ctx};
    co_translator *t = NULL;

    if (n == 0)
        return no_samples(plan, split);
    n = limit >= 0 && limit < n ? (uint32_t)limit : n;
    int32_t offsets[AT_ONCE + 1], *tokens = co_array((size_t)AT_ONCE * (size_t)d->io.max_len, sizeof *tokens);
    co_source source[AT_ONCE];
    co_err err = tokens ? co_translator_open(&t, plan, beam) : CO_ENOMEM;
    for (uint32_t at = 0; at < n && !err; at += AT_ONCE) {
        int some = n - at < AT_ONCE ? (int)(n - at) : AT_ONCE;
        for (int i = 0; i < some; i++)
            ids[i] = at + (uint32_t)i;
        read_sources(d, split, ids, some, offsets, tokens, source);
        err = co_translate(t, source, some, score, &s);
        err = err ? err : s.err;
    }
    if (!err)
        *out = (co_translation_scores){co_bleu_score(&s.bleu), co_error_rate_value(&s.cer),
                                       co_error_rate_value(&s.wer), n};
    co_translator_close(t);
    co_str_fini(&s.source);
    co_str_fini(&s.target);
    co_free(tokens);
    return err;
}
