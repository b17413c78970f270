/* stage.c -- see stage.h. */
#include "train/stage.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/maths.h"
#include "harness.h"
#include "train/aside_int.h"

static void *defaults(const co_option *options, size_t size)
{
    void *cfg = calloc(1, size + 1);

    CHECK_OK(co_options_default(options, cfg));
    return cfg;
}

/* Tries a table: `key` begins with `prefix`. */
static bool set_in(const co_option *options, void *cfg, const char *prefix, const char *key, const char *value)
{
    size_t n = strlen(prefix);
    const co_option *row = strncmp(key, prefix, n) == 0 && options ? co_option_find(options, key + n) : NULL;

    if (row)
        CHECK_OK(co_option_set(row, cfg, key, value));
    return row != NULL;
}

void stage_set(stage *g, const char *word)
{
    char key[128];
    const char *value = strchr(word, '=') + 1;
    co_train_spec *s = &g->spec;

    snprintf(key, sizeof key, "%.*s", (int)(value - word - 1), word);
    if (strcmp(key, "model") == 0) {
        s->model = co_model_find(value);
        s->model_cfg = g->model_cfg = defaults(s->model->options, s->model->cfg_size);
    } else if (strcmp(key, "data") == 0) {
        s->data = co_dataset_find(value);
        s->data_cfg = g->data_cfg = defaults(s->data->options, s->data->cfg_size);
    } else if (strcmp(key, "optim") == 0) {
        s->optim = co_optim_find(value);
        s->optim_cfg = g->optim_cfg = defaults(s->optim->options, s->optim->cfg_size);
    } else if (strcmp(key, "schedule") == 0) {
        s->schedule = co_schedule_find(value);
        s->schedule_cfg = g->schedule_cfg = defaults(s->schedule->options, s->schedule->cfg_size);
    } else {
        bool there = set_in(s->model->options, g->model_cfg, "model.", key, value) ||
                     set_in(s->data->options, g->data_cfg, "data.", key, value) ||
                     set_in(s->optim->options, g->optim_cfg, "optim.", key, value) ||
                     (s->schedule && set_in(s->schedule->options, g->schedule_cfg, "schedule.", key, value));
        for (const co_train_table *t = co_train_tables; t->prefix && !there; t++)
            there = set_in(t->options, &g->cfg, t->prefix, key, value);
        CHECK(there, "no key %s", key);
    }
}

void stage_open(stage *g, const char *const *words)
{
    *g = (stage){.spec = {.cfg = &g->cfg}};
    for (const co_train_table *t = co_train_tables; t->prefix; t++)
        CHECK_OK(co_options_default(t->options, &g->cfg));
    for (; *words; words++)
        stage_set(g, *words);
}

void stage_close(stage *g)
{
    for (const co_train_table *t = co_train_tables; t->prefix; t++)
        co_options_fini(t->options, &g->cfg);
    co_options_fini(g->spec.model->options, g->model_cfg);
    co_options_fini(g->spec.data->options, g->data_cfg);
    co_options_fini(g->spec.optim->options, g->optim_cfg);
    if (g->spec.schedule)
        co_options_fini(g->spec.schedule->options, g->schedule_cfg);
    free(g->schedule_cfg);
    free(g->model_cfg);
    free(g->data_cfg);
    free(g->optim_cfg);
}

co_plan *stage_plan(const stage *g)
{
    co_plan *plan;

    CHECK_OK(co_plan_new(&plan, &g->spec));
    CHECK_OK(open_state(plan));
    return plan;
}

/* --- the course ----------------------------------------------------------------------------------------- */
static size_t parts_of(const co_plan *plan)
{
    return 1 + (size_t)plan->moments;
}

static void copy_state(const co_plan *plan, float *out)
{
    size_t n = plan->layout->count;

    for (size_t part = 0; part < parts_of(plan); part++)
        memcpy(out + part * n, part == 0 ? plan->regions->state : plan->regions->moment[part - 1],
               n * sizeof *out);
}

static double value_of(const co_plan *plan, uint32_t u, bool metric)
{
    const result *r = &plan->regions->ctl->ring[u % RING];

    return of_bits(atomic_load(metric ? &r->metric : &r->loss));
}

static course *recording; /* for the point below: one course at a time */

/* The one rank at any of its points: when it has just begun to end a step, the state is that step's. */
static void record_state(struct rank *rank)
{
    uint32_t done = pc_unit(atomic_load(&rank->regions->ctl->pc)) - 1;
    unit u = unit_now(rank->plan, rank->regions->ctl, done ? done : 1);
    int64_t step = done ? u.step : 0;

    if (atomic_load(&rank->me->record.phase) != CO_PHASE_LOAD || recording->state[step])
        return;
    recording->state[step] = calloc(recording->count, sizeof(float));
    copy_state(rank->plan, recording->state[step]);
}

void course_open(course *c, const stage *g)
{
    stage one = *g;
    struct rank rank;

    memset(c, 0, sizeof *c);
    one.spec.cfg = &one.cfg;
    one.spec.ckpt_root = NULL;
    one.cfg.devices = (char *)"1";
    co_plan *plan = stage_plan(&one);
    CHECK(plan->units.steps <= COURSE_STEPS && plan->units.last_unit <= COURSE_UNITS, "a short course");
    c->count = parts_of(plan) * plan->layout->count;
    co_fpu_init();
    CHECK_OK(rank_open(&rank, plan, plan->regions, 0, 0, -1));
    recording = c;
    rank.point = record_state;
    rank_loop(&rank);
    rank_close(&rank);
    unit_order done = unit_order_now(plan, plan->regions->ctl); /* it may have ended early */
    c->steps = done.steps;
    c->units = (int)done.last_unit;
    c->state[c->steps] = calloc(c->count, sizeof(float));
    copy_state(plan, c->state[c->steps]);
    for (int u = 1; u <= c->units; u++) {
        c->loss[u] = value_of(plan, (uint32_t)u, false);
        c->metric[u] = value_of(plan, (uint32_t)u, true);
    }
    for (int64_t s = 0; s <= c->steps; s++)
        CHECK(c->state[s], "no state of step %lld", (long long)s);
    co_plan_free(plan);
}

void course_close(course *c)
{
    for (int64_t s = 0; s <= c->steps; s++)
        free(c->state[s]);
}

void course_check_state(const course *c, const co_plan *plan, int64_t step, const char *what)
{
    float *now = calloc(c->count, sizeof *now);

    copy_state(plan, now);
    CHECK(memcmp(now, c->state[step], c->count * sizeof *now) == 0, "%s: the state of step %lld differs",
          what, (long long)step);
    free(now);
}

void course_check_unit(const course *c, const co_plan *plan, uint32_t u, const char *what)
{
    double loss = value_of(plan, u, false), metric = value_of(plan, u, true);

    CHECK(bits_of(loss) == bits_of(c->loss[u]) && bits_of(metric) == bits_of(c->metric[u]),
          "%s: unit %u of pc %llx: loss %.17g metric %.17g, want %.17g %.17g", what, u,
          (unsigned long long)atomic_load(&plan->regions->ctl->pc), loss, metric, c->loss[u], c->metric[u]);
}

/* Reads a snapshot in odd pieces, slowly, while the ranks go on, and compares it. */
static void check_snapshot(const course *c, const co_plan *plan, uint32_t of, const char *what)
{
    enum { PIECE = 777 };
    snapshot snap = {plan, plan->regions, of};
    unit u = unit_now(plan, plan->regions->ctl, of);
    int64_t step = u.kind == UNIT_TRAIN ? u.step - 1 : u.step;
    size_t n = plan->layout->count;
    float got[PIECE];

    for (size_t part = 0; part < parts_of(plan); part++)
        for (size_t at = 0; at < n; at += PIECE) {
            size_t m = n - at < PIECE ? n - at : PIECE;
            CHECK_OK(snapshot_read(&snap, (int)part, at, m, got));
            CHECK(memcmp(got, c->state[step] + part * n + at, m * sizeof *got) == 0,
                  "%s: snapshot of step %lld, part %zu: elements from %zu differ", what, (long long)step,
                  part, at);
            sched_yield();
        }
    snapshot_read_through(&snap);
}

void stage_attend(const course *c, const co_plan *plan, const char *what)
{
    control *ctl = plan->regions->ctl;
    uint32_t pc = pc_unit(atomic_load_explicit(&ctl->pc, memory_order_acquire));
    uint64_t snap = atomic_load_explicit(&ctl->snap, memory_order_acquire);

    for (uint64_t u = atomic_load(&ctl->consumed) + 1; u < pc; u++) {
        course_check_unit(c, plan, (uint32_t)u, what);
        atomic_store_explicit(&ctl->consumed, u, memory_order_release);
    }
    if (!(snap & 1))
        return;
    bool was_read = aside_is_done(plan->regions, (uint32_t)(snap >> 1));
    if (!was_read)
        check_snapshot(c, plan, (uint32_t)(snap >> 1), what);
    if (!was_read && aside_is_done(plan->regions, (uint32_t)(snap >> 1)))
        return; /* the pool was smaller than the state: until the next call, ranks go on without copies */
    atomic_store_explicit(&ctl->snap, snap & ~(uint64_t)1, memory_order_release);
    co_event_ring(&ctl->event);
}
