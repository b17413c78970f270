/* search.c -- looks for the likeliest translation: greedily, or by a beam search.
 *
 * A translation so far (struct beam) is its tokens, the rows of what was kept for them (decoder.c), and the
 * sum of their log probabilities. Each step goes on with the `beam` best of all continuations of a sentence
 * by one token; those that end are put aside. A sentence is done when `beam` of them have ended, or when
 * its translation is 50 tokens longer than the source or as long as the data allows. The best is that of
 * the highest mean log probability per token. Ties go to the lower token and the earlier translation, so
 * the result is a function of weights and source, whatever the other sentences of its group are. With beam
 * = 1 this is greedy search.
 */
#include "train/translate_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/maths.h"
#include "train/plan_int.h"

/* One translation. */
struct beam {
    double score;         /* sum of log probabilities */
    int n;                /* tokens after the first, which is `begin` */
    int32_t *token, *row; /* [most], [most]: row of what was kept when the token before it was given */
};

struct sentence {
    int live, ended, limit;
    struct beam *all;         /* [2 beam] */
    struct beam *beam, *next; /* [beam] each: the translations so far, and after this step */
    struct beam best;
    bool has_best;
};

struct beam_search {
    const decoder *decoder;
    int32_t begin, end; /* the tokens */
    co_run run;
    struct sentence sentence[TRANSLATE_GROUP];
    int32_t *block; /* of all beams */
    int kept;       /* rows in use */
};

/* --- memory --------------------------------------------------------------------------------------------- */
static size_t beams_of(const decoder *d)
{
    return (size_t)TRANSLATE_GROUP * (size_t)(2 * d->beam + 1);
}

size_t search_bytes(const decoder *d)
{
    return sizeof(beam_search) + beams_of(d) * (sizeof(struct beam) + 2 * (size_t)d->most * sizeof(int32_t));
}

static co_err make_beams(beam_search *s)
{
    const decoder *d = s->decoder;
    size_t most = (size_t)d->most;
    int32_t *at = s->block = co_array(beams_of(d) * 2 * most, sizeof *at);

    if (!at)
        return CO_ENOMEM;
    for (int i = 0; i < TRANSLATE_GROUP; i++) {
        struct sentence *one = &s->sentence[i];
        one->all = co_array(2 * (size_t)d->beam, sizeof *one->all);
        if (!one->all)
            return CO_ENOMEM;
        for (int k = 0; k <= 2 * d->beam; k++, at += 2 * most) {
            struct beam *b = k < 2 * d->beam ? &one->all[k] : &one->best;
            *b = (struct beam){.token = at, .row = at + most};
        }
    }
    return CO_OK;
}

co_err search_new(beam_search **out, const co_plan *plan, const decoder *d)
{
    beam_search *s = co_zalloc(sizeof *s);

    if (!s)
        return CO_ENOMEM;
    s->decoder = d;
    s->begin = plan->data->io.begin;
    s->end = plan->data->io.end;
    s->run = (co_run){.seed = (uint64_t)plan->cfg.seed};
    if (make_beams(s) != CO_OK) {
        search_free(s);
        return CO_ENOMEM;
    }
    *out = s;
    return CO_OK;
}

void search_free(beam_search *s)
{
    if (!s)
        return;
    for (int i = 0; i < TRANSLATE_GROUP; i++)
        co_free(s->sentence[i].all);
    co_free(s->block);
    co_free(s);
}

/* --- a step --------------------------------------------------------------------------------------------- */
/* Writes the inputs of a step; returns its rows. */
static int gather(const beam_search *s, co_bases *bases)
{
    const decoder *d = s->decoder;
    int32_t *last = decoder_input(d, bases, "last"), *place = decoder_input(d, bases, "place");
    int32_t *pick = decoder_input(d, bases, "pick"), *rows = decoder_input(d, bases, "row_offsets");
    int32_t *keys = decoder_input(d, bases, "key_offsets"), *beams = decoder_input(d, bases, "beam_offsets");
    int row = 0, key = 0;

    rows[0] = keys[0] = beams[0] = 0;
    for (int i = 0; i < TRANSLATE_GROUP; i++) {
        const struct sentence *one = &s->sentence[i];
        for (int k = 0; k < one->live; k++, row++) {
            const struct beam *b = &one->beam[k];
            last[row] = b->n ? b->token[b->n - 1] : s->begin;
            place[row] = b->n;
            for (int j = 0; j < b->n; j++)
                pick[key++] = b->row[j];
            pick[key++] = d->room.kept + row;
            rows[row + 1] = row + 1;
            keys[row + 1] = key;
        }
        beams[i + 1] = row;
    }
    for (int r = row; r < d->room.rows; r++) {
        rows[r + 1] = row;
        keys[r + 1] = key;
    }
    bases->ragged[CO_RAGGED_Y] = row;
    bases->ragged[CO_RAGGED_KEYS] = key;
    return row;
}

/* A continuation of a translation by one token. */
struct choice {
    double score;
    int from;
    int32_t token;
};

/* Inserts a choice into the best `room` so far, which stand in falling order; of equal ones the first stays
 * first. */
static void offer(struct choice *best, int *n, int room, struct choice c)
{
    int at = *n;

    while (at > 0 && best[at - 1].score < c.score)
        at--;
    if (at >= room)
        return;
    *n = *n < room ? *n + 1 : room;
    memmove(best + at + 1, best + at, (size_t)(*n - 1 - at) * sizeof *best);
    best[at] = c;
}

static void offer_row(struct choice *best, int *n, int room, const struct beam *b, int from,
                      const float *logits, int64_t classes)
{
    float top = logits[0];
    double sum = 0;

    for (int64_t i = 1; i < classes; i++)
        top = logits[i] > top ? logits[i] : top;
    for (int64_t i = 0; i < classes; i++)
        sum += co_exp((double)(logits[i] - top));
    double base = b->score - (double)top - co_log(sum);
    for (int64_t i = 0; i < classes; i++)
        if (*n < room || base + (double)logits[i] > best[*n - 1].score)
            offer(best, n, room, (struct choice){base + (double)logits[i], from, (int32_t)i});
}

static void copy_beam(struct beam *to, const struct beam *from)
{
    memcpy(to->token, from->token, (size_t)from->n * sizeof *to->token);
    memcpy(to->row, from->row, (size_t)from->n * sizeof *to->row);
    to->n = from->n;
    to->score = from->score;
}

/* `tokens` counts the end too. */
static void end_beam(struct sentence *one, const struct beam *b, double score, int tokens)
{
    double mean = score / tokens;

    one->ended++;
    if (one->has_best && mean <= one->best.score)
        return;
    copy_beam(&one->best, b);
    one->best.score = mean;
    one->has_best = true;
}

/* The best continuations become `next`; `row` is the sentence's first of this step. Returns how many there
 * are. */
static int continue_beams(const beam_search *s, const co_bases *bases, struct sentence *one, int row)
{
    const decoder *d = s->decoder;
    size_t row_size = (size_t)d->classes + (size_t)d->caches * (size_t)d->width;
    const float *out = (const float *)bases->output + (size_t)row * row_size;
    struct choice best[2 * CO_BEAM_MOST];
    int n = 0, live = 0;

    for (int k = 0; k < one->live; k++) /* as many again, since `beam` of them may end */
        offer_row(best, &n, 2 * d->beam, &one->beam[k], k, out + (size_t)k * row_size, d->classes);
    for (int i = 0; i < n && live < d->beam && one->ended < d->beam; i++) {
        const struct beam *from = &one->beam[best[i].from];
        if (best[i].token == s->end) {
            if (i < d->beam)
                end_beam(one, from, best[i].score, from->n + 1);
            continue;
        }
        struct beam *to = &one->next[live++];
        copy_beam(to, from);
        to->token[to->n] = best[i].token;
        to->row[to->n++] = s->kept + row + best[i].from;
        to->score = best[i].score;
    }
    return live;
}

static void advance(const beam_search *s, const co_bases *bases, struct sentence *one, int row)
{
    int live = continue_beams(s, bases, one, row);
    struct beam *other = one->beam;

    one->beam = one->next;
    one->next = other;
    one->live = one->ended >= s->decoder->beam ? 0 : live;
    if (one->live && one->beam[0].n >= one->limit) {
        end_beam(one, &one->beam[0], one->beam[0].score, one->beam[0].n);
        one->live = 0;
    }
}

/* --- a group -------------------------------------------------------------------------------------------- */
static void start(beam_search *s, const co_source *source, int n)
{
    s->kept = 0;
    for (int i = 0; i < TRANSLATE_GROUP; i++) {
        struct sentence *one = &s->sentence[i];
        one->beam = one->all;
        one->next = one->all + s->decoder->beam;
        one->live = i < n;
        one->ended = 0;
        one->has_best = false;
        one->best.n = one->beam[0].n = 0;
        one->best.score = one->beam[0].score = 0;
        one->limit = i < n ? decoder_limit(s->decoder, source[i].n) : 0;
    }
}

void search_run(beam_search *s, co_bases *bases, const co_source *source, int n, _Atomic uint32_t *beat)
{
    start(s, source, n);
    decoder_encode(s->decoder, bases, source, n, &s->run, beat);
    for (int rows; (rows = gather(s, bases)) > 0; s->kept += rows) {
        int row = 0, live[TRANSLATE_GROUP];
        co_exec_run(s->decoder->set.e[1].exec, bases, &s->run, beat);
        for (int i = 0; i < TRANSLATE_GROUP; i++)
            live[i] = s->sentence[i].live;
        for (int i = 0; i < TRANSLATE_GROUP; i++) {
            if (live[i])
                advance(s, bases, &s->sentence[i], row);
            row += live[i];
        }
        decoder_keep(s->decoder, bases, s->kept, rows);
    }
}

co_translation search_best(const beam_search *s, int i)
{
    const struct beam *best = &s->sentence[i].best;

    return (co_translation){.token = best->token, .n = best->n, .score = best->score};
}
