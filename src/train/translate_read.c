/* translate_read.c -- the supervisor's part in the translations of an evaluation: it makes text of the
 * tokens that the ranks left in the arena, and scores it. */
#include "base/alloc.h"
#include "base/str.h"
#include "train/super_int.h"

static void free_shown(co_translations *t)
{
    for (int i = 0; i < t->n; i++) {
        co_free((char *)t->shown[i].source);
        co_free((char *)t->shown[i].target);
        co_free((char *)t->shown[i].predicted);
    }
    t->n = 0;
}

static co_err keep_shown(co_translations *t, const scoring *s, uint32_t id, const char *predicted)
{
    co_translated *shown = &t->shown[t->n];

    if (t->n == CO_SHOWN_TRANSLATIONS)
        return CO_OK;
    t->n++;
    *shown = (co_translated){id, co_strdup(co_str_text(&s->source)), co_strdup(co_str_text(&s->target)),
                             co_strdup(predicted)};
    return shown->source && shown->target && shown->predicted ? CO_OK : CO_ENOMEM;
}

static co_err read_all(const struct run *run, scoring *s, co_str *text, co_translations *out)
{
    const co_plan *plan = run->plan;

    for (uint32_t id = 0; id < plan->translations.n[s->split]; id++) {
        const int32_t *from = run->regions->translation[s->split] + id * translation_stride(plan);
        co_str_clear(text);
        plan->data->decode(plan->data, from + 1, from[0], text);
        CO_TRY(co_str_err(text));
        CO_TRY(scoring_add(s, id, co_str_text(text)));
        CO_TRY(keep_shown(out, s, id, co_str_text(text)));
    }
    out->scores = scoring_result(s);
    return CO_OK;
}

co_translations *translations_read(const struct run *run, co_split split, uint32_t number)
{
    scoring s = {.data = run->plan->data, .split = split};
    co_str text = {0};

    if (atomic_load_explicit(&run->regions->ctl->translated, memory_order_acquire) != number)
        return NULL;
    co_translations *out = co_zalloc(sizeof *out);
    co_err err = out ? read_all(run, &s, &text, out) : CO_ENOMEM;
    co_str_fini(&text);
    scoring_fini(&s);
    if (!err)
        return out;
    run_notice(run, "the translations of this evaluation cannot be shown: memory is out");
    co_errclear();
    translations_free(out);
    return NULL;
}

void translations_free(co_translations *t)
{
    if (!t)
        return;
    free_shown(t);
    co_free(t);
}
