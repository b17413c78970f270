/* translate.c -- translates sentences with a model of pairs: greedily, or by a beam search.
 *
 * Sentences are translated in groups. The encoder runs once for a group; then every step adds one token to
 * each unfinished translation (nn/decoding.c). What a step computed for a token is kept and never computed
 * again. A translation (struct beam) is its tokens, the rows of what was kept for them, and the sum of
 * their log probabilities.
 *
 * Each step goes on with the `beam` best of all continuations of a sentence by one token; those that end
 * are put aside. A sentence is done when `beam` of them have ended, or when its translation is 50 tokens
 * longer than the source or as long as the data allows. The best is that of the highest mean log
 * probability per token. Ties go to the lower token and the earlier translation, so the result is a
 * function of weights and source. With beam = 1 this is greedy search.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/maths.h"
#include "train/evaluate_int.h"

enum { GROUP = 16, LONGER = 50 };

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

struct co_translator {
    co_plan *plan;
    int beam, most, caches; /* most: tokens of a translation */
    int64_t width, classes;
    co_step_room room;
    exec_set set; /* [0] encode, [1] step */
    struct offline offline;
    struct sentence sentence[GROUP];
    int32_t *block; /* of all beams */
    int kept;       /* rows in use */
};

/* --- memory ---------------------------------------------------------------------------------------------- */

static void *input(const struct co_translator *t, int exec, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;
    co_err err = co_exec_input(t->set.e[exec].exec, name, &offset, &dtype, &shape);

    CO_ASSERT(err == CO_OK, "an input that the graph declares");
    return (char *)t->offline.bases.input + offset;
}

static float *table(const struct co_translator *t, const char *what, int i)
{
    char name[32];

    snprintf(name, sizeof name, "%s.%d", what, i);
    return input(t, 1, name);
}

static co_err add_exec(struct co_translator *t, co_graph *graph)
{
    shape_exec *shaped = &t->set.e[t->set.n];
    co_err err = co_exec_new_team(&shaped->exec, graph, t->plan->kernels, t->plan->threads, 0);

    co_graph_free(graph);
    if (err)
        return err;
    const co_exec_info *info = co_exec_info_of(shaped->exec);
    exec_set *set = &t->set;
    set->n++;
    set->input_bytes = info->input_bytes > set->input_bytes ? info->input_bytes : set->input_bytes;
    set->work_bytes = info->work_bytes > set->work_bytes ? info->work_bytes : set->work_bytes;
    set->output_bytes = info->output_bytes > set->output_bytes ? info->output_bytes : set->output_bytes;
    return co_layout_same(t->plan->layout ? t->plan->layout : co_exec_layout(shaped->exec),
                          co_exec_layout(shaped->exec));
}

static co_err make_execs(struct co_translator *t)
{
    const co_train_spec *spec = &t->plan->spec;
    const co_io *io = &t->plan->data->io;
    co_slice_shape sources = {.n = GROUP, .tokens = t->room.tokens};
    co_graph *graph;

    if (!(t->set.e = co_array(2, sizeof *t->set.e)))
        return CO_ENOMEM;
    CO_TRY(co_encode_graph(&graph, spec->model, spec->model_cfg, io, sources));
    CO_TRY(add_exec(t, graph));
    CO_TRY(co_step_graph(&graph, spec->model, spec->model_cfg, io, &t->room));
    CO_TRY(add_exec(t, graph));
    if (!t->plan->layout)
        t->plan->layout = co_exec_layout(t->set.e[0].exec);
    return CO_OK;
}

static co_err make_beams(struct co_translator *t)
{
    size_t beams = (size_t)GROUP * (size_t)(2 * t->beam + 1), most = (size_t)t->most;
    int32_t *at = t->block = co_array(beams * 2 * most, sizeof *at);

    if (!at)
        return CO_ENOMEM;
    for (int i = 0; i < GROUP; i++) {
        struct sentence *s = &t->sentence[i];
        s->all = co_array(2 * (size_t)t->beam, sizeof *s->all);
        if (!s->all)
            return CO_ENOMEM;
        for (int k = 0; k <= 2 * t->beam; k++, at += 2 * most) {
            struct beam *b = k < 2 * t->beam ? &s->all[k] : &s->best;
            *b = (struct beam){.token = at, .row = at + most};
        }
    }
    return CO_OK;
}

co_err co_translator_open(co_translator **out, co_plan *plan, int beam)
{
    const co_io *io = &plan->data->io;
    struct co_translator *t;

    if (io->task != CO_TASK_PAIRS || !plan->spec.model->decoder)
        return co_fail(CO_EINPUT,
                       "model=%s does not translate: that needs pairs of sentences and model=transformer",
                       plan->spec.model->name);
    if (!(t = co_zalloc(sizeof *t)))
        return CO_ENOMEM;
    *t = (struct co_translator){.plan = plan, .beam = beam, .most = (int)io->max_len, .classes = io->classes};
    t->caches = plan->spec.model->decoder->caches(plan->spec.model_cfg, &t->width);
    t->room = (co_step_room){.sentences = GROUP,
                             .tokens = GROUP * t->most,
                             .rows = GROUP * beam,
                             .kept = GROUP * beam * t->most,
                             .keys = GROUP * beam * t->most,
                             .longest = t->most};
    co_err err = make_execs(t);
    if (!err)
        err = make_beams(t);
    if (!err)
        err = offline_open(&t->offline, plan, &t->set);
    if (err) {
        co_translator_close(t);
        return err;
    }
    *out = t;
    return CO_OK;
}

void co_translator_close(co_translator *t)
{
    if (!t)
        return;
    for (int i = 0; i < GROUP; i++)
        co_free(t->sentence[i].all);
    co_free(t->block);
    offline_close(&t->offline);
    if (t->set.n && t->plan->layout == co_exec_layout(t->set.e[0].exec))
        t->plan->layout = NULL;
    exec_set_fini(&t->set);
    co_free(t);
}

/* --- running ---------------------------------------------------------------------------------------------- */

static void run(struct co_translator *t, int exec)
{
    co_exec_run(t->set.e[exec].exec, &t->offline.bases, &(co_run){.seed = (uint64_t)t->plan->cfg.seed}, NULL);
}

/* The sources through the encoder; its result becomes memory.0, memory.1 ... */
static void encode(struct co_translator *t, const co_source *source, int n)
{
    int32_t *x = input(t, 0, "x"), *offsets = input(t, 0, "offsets"), ends[GROUP + 1] = {0};
    size_t wide = (size_t)t->width;

    for (int i = 0; i < GROUP; i++) {
        ends[i + 1] = ends[i] + (i < n ? source[i].n : 0);
        if (i < n)
            memcpy(x + ends[i], source[i].token, (size_t)source[i].n * sizeof *x);
    }
    memcpy(offsets, ends, sizeof ends);
    t->offline.bases.ragged[CO_RAGGED_X] = ends[GROUP];
    run(t, 0);
    const float *out = t->offline.bases.output; /* [tokens, caches * width] */
    for (int c = 0; c < t->caches; c++) {
        float *to = table(t, "memory", c);
        for (int32_t row = 0; row < ends[GROUP]; row++)
            memcpy(to + (size_t)row * wide, out + ((size_t)row * (size_t)t->caches + (size_t)c) * wide,
                   wide * sizeof *to);
    }
    memcpy(input(t, 1, "offsets"), ends, sizeof ends);
}

/* Writes the inputs of a step; returns its rows. */
static int gather(struct co_translator *t)
{
    int32_t *last = input(t, 1, "last"), *place = input(t, 1, "place"), *pick = input(t, 1, "pick");
    int32_t *rows = input(t, 1, "row_offsets"), *keys = input(t, 1, "key_offsets"),
            *beams = input(t, 1, "beam_offsets");
    int row = 0, key = 0;

    rows[0] = keys[0] = beams[0] = 0;
    for (int i = 0; i < GROUP; i++) {
        const struct sentence *s = &t->sentence[i];
        for (int k = 0; k < s->live; k++, row++) {
            const struct beam *b = &s->beam[k];
            last[row] = b->n ? b->token[b->n - 1] : t->plan->data->io.begin;
            place[row] = b->n;
            for (int j = 0; j < b->n; j++)
                pick[key++] = b->row[j];
            pick[key++] = t->room.kept + row;
            rows[row + 1] = row + 1;
            keys[row + 1] = key;
        }
        beams[i + 1] = row;
    }
    for (int r = row; r < t->room.rows; r++) {
        rows[r + 1] = row;
        keys[r + 1] = key;
    }
    t->offline.bases.ragged[CO_RAGGED_Y] = row;
    t->offline.bases.ragged[CO_RAGGED_KEYS] = key;
    return row;
}

/* Keeps what later steps need of these rows. */
static void keep(struct co_translator *t, int rows)
{
    size_t wide = (size_t)t->width, row_size = (size_t)t->classes + (size_t)t->caches * wide;
    const float *out = t->offline.bases.output; /* [rows, classes + caches * width] */

    for (int c = 0; c < t->caches; c++) {
        float *to = table(t, "kept", c) + (size_t)t->kept * wide;
        for (int r = 0; r < rows; r++)
            memcpy(to + (size_t)r * wide, out + (size_t)r * row_size + (size_t)t->classes + (size_t)c * wide,
                   wide * sizeof *to);
    }
    t->kept += rows;
}

/* --- searching --------------------------------------------------------------------------------------------- */

enum { MOST_BEAM = 64 };

/* A continuation of a translation by one token. */
struct choice {
    double score;
    int from;
    int32_t token;
};

/* Inserts a choice into the best `room` so far, which stand in falling order; of equal ones the first stays first. */
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
static void end_beam(struct sentence *s, const struct beam *b, double score, int tokens)
{
    double mean = score / tokens;

    s->ended++;
    if (s->has_best && mean <= s->best.score)
        return;
    copy_beam(&s->best, b);
    s->best.score = mean;
    s->has_best = true;
}

/* Goes on with the best continuations; `row` is the sentence's first of this step. */
static void advance(struct co_translator *t, struct sentence *s, int row)
{
    const float *out = t->offline.bases.output;
    size_t row_size = (size_t)t->classes + (size_t)t->caches * (size_t)t->width;
    struct choice best[2 * MOST_BEAM];
    int n = 0, live = 0;

    for (int k = 0; k < s->live; k++) /* as many again, since `beam` of them may end */
        offer_row(best, &n, 2 * t->beam, &s->beam[k], k, out + (size_t)(row + k) * row_size, t->classes);
    for (int i = 0; i < n && live < t->beam && s->ended < t->beam; i++) {
        const struct beam *from = &s->beam[best[i].from];
        if (best[i].token == t->plan->data->io.end) {
            if (i < t->beam)
                end_beam(s, from, best[i].score, from->n + 1);
            continue;
        }
        struct beam *to = &s->next[live++];
        copy_beam(to, from);
        to->token[to->n] = best[i].token;
        to->row[to->n++] = t->kept + row + best[i].from;
        to->score = best[i].score;
    }
    struct beam *other = s->beam;
    s->beam = s->next;
    s->next = other;
    s->live = s->ended >= t->beam ? 0 : live;
    if (s->live && s->beam[0].n >= s->limit) {
        end_beam(s, &s->beam[0], s->beam[0].score, s->beam[0].n);
        s->live = 0;
    }
}

static void start(struct co_translator *t, const co_source *source, int n)
{
    t->kept = 0;
    for (int i = 0; i < GROUP; i++) {
        struct sentence *s = &t->sentence[i];
        s->beam = s->all;
        s->next = s->all + t->beam;
        s->live = i < n;
        s->ended = 0;
        s->has_best = false;
        s->beam[0].n = 0;
        s->beam[0].score = 0;
        int limit = i < n ? source[i].n + LONGER : 0;
        s->limit = limit < t->most - 1 ? limit : t->most - 1;
    }
}

static void translate_group(struct co_translator *t, const co_source *source, int n)
{
    start(t, source, n);
    encode(t, source, n);
    for (int rows; (rows = gather(t)) > 0;) {
        int row = 0, live[GROUP];
        run(t, 1);
        for (int i = 0; i < GROUP; i++)
            live[i] = t->sentence[i].live;
        for (int i = 0; i < GROUP; i++) {
            if (live[i])
                advance(t, &t->sentence[i], row);
            row += live[i];
        }
        keep(t, rows);
    }
}

co_err co_translate(co_translator *t, const co_source *source, int n,
                    void (*each)(void *ctx, int i, const co_translation *best), void *ctx)
{
    co_str text = {0};
    co_err err = CO_OK;

    for (int i = 0; i < n; i++)
        if (source[i].n < 1 || source[i].n > t->most)
            return co_fail(CO_EINPUT, "a sentence of %d tokens: the model was trained with up to %d",
                           source[i].n, t->most);
    for (int at = 0; at < n && !err; at += GROUP) {
        int some = n - at < GROUP ? n - at : GROUP;
        translate_group(t, source + at, some);
        for (int i = 0; i < some && !err; i++) {
            const struct beam *best = &t->sentence[i].best;
            co_str_clear(&text);
            t->plan->data->decode(t->plan->data, best->token, best->n, &text);
            err = co_str_err(&text);
            if (!err)
                each(ctx, at + i, &(co_translation){best->token, best->n, best->score, co_str_text(&text)});
        }
    }
    co_str_fini(&text);
    return err;
}
