/* tune.c -- tune.lr=true: searches for a learning rate, then trains as if the user had typed it.
 *
 *     search   a run of tune.steps steps from the same first weights, with a rate that rises from tune.lr_min
 *              to tune.lr_max; no folder, no checkpoints, no evaluation. Its losses, and so its result, are
 *              the same for any number of ranks, bit for bit.
 *     words    optim.lr=FOUND replaces tune.lr=true in the line. Everything later uses only those words: the
 *              record, the fingerprint and a resume know nothing of the search.
 *     record   lr_find.csv, lr_find.svg, and the curve on the screen, once there is a folder.
 */
#include "cli/tune_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/train_int.h"
#include "proc/crew.h"
#include "track/plot.h"

enum { EDGE = 6 }; /* a rate within this many points of the last one means that the range was too short */

struct search {
    lr_curve curve;
    double was, found;
    co_console *console;
    int64_t steps;
};

/* --- the run -------------------------------------------------------------------------------------------- */
static void on_step(void *ctx, const co_step_result *r)
{
    struct search *f = ctx;

    lr_curve_add(&f->curve, r->lr, r->loss);
    if (!f->curve.over)
        co_console_progress(
            f->console,
            &(co_progress){
                .step = r->step, .steps = f->steps, .epoch = r->epoch + 1, .loss = r->loss, .eta_s = -1},
            false);
}

static void on_notice(void *ctx, const char *text)
{
    co_console_line(((struct search *)ctx)->console, "%s", text);
}

static co_err on_turn(void *ctx)
{
    return ((struct search *)ctx)->curve.over ? CO_ESTOP : CO_OK;
}

static co_err check(const training *s)
{
    const co_train_cfg *c = s->app.cfg;

    if (c->ckpt_path && c->ckpt_path[0])
        return co_fail(
            CO_EINPUT,
            "tune.lr: the search comes before the first step, and ckpt_path=%s continues a run: leave "
            "tune.lr out (the rate that was found is in the run's config.yaml)",
            c->ckpt_path);
    if (c->tune_min >= c->tune_max)
        return co_fail(CO_EINPUT, "tune.lr_min=%g is not below tune.lr_max=%g", c->tune_min, c->tune_max);
    if (c->tune_steps < LR_LEAST_STEPS)
        return co_fail(CO_EINPUT,
                       "tune.steps=%lld: the first %d and the last %d are not judged by, so take %d or more",
                       (long long)c->tune_steps, LR_SKIP_FIRST, LR_SKIP_LAST, LR_LEAST_STEPS);
    return CO_OK;
}

/* The schedule `range` from tune.lr_min to tune.lr_max; *fields is the caller's. */
static co_err make_schedule(const co_train_cfg *c, const co_schedule_def *range, void **fields)
{
    const struct {
        const char *key;
        double value;
    } ends[] = {{"start_lr", c->tune_min}, {"end_lr", c->tune_max}};
    co_err err = CO_OK;

    if (!(*fields = co_zalloc(range->cfg_size)))
        return CO_ENOMEM;
    err = co_options_default(range->options, *fields);
    for (size_t i = 0; i < CO_COUNT(ends) && !err; i++) {
        const co_option *row = co_option_find(range->options, ends[i].key);
        char text[40];
        CO_ASSERT(row, "the range schedule has both ends");
        snprintf(text, sizeof text, "%.17g", ends[i].value);
        err = co_option_set(row, *fields, ends[i].key, text);
    }
    return err;
}

/* The same configuration without the parts that a search does not need. */
static co_train_cfg config_of_search(const co_train_cfg *asked)
{
    co_train_cfg c = *asked; /* borrows its texts */

    c.test = c.fast_dev_run = c.ckpt_enabled = false;
    c.max_epochs = c.max_steps = c.tune_steps; /* every epoch has at least one step */
    c.min_epochs = c.min_steps = c.eval_every = c.early_patience = 0;
    c.warmup_steps = c.warmup_epochs = 0;
    c.max_time = NULL;
    c.ema = 0;
    c.on_nan = CO_ON_NAN_SKIP; /* a loss that is not finite ends the search, not the run */
    c.fault_phase = CO_FAULT_NONE;
    c.fault_kills = 0;
    return c;
}

static co_err run_search(training *s, struct search *f)
{
    const co_schedule_def *range = co_schedule_find("range");
    co_train_cfg cfg = config_of_search(s->app.cfg);
    co_train_spec spec = s->app.spec;
    co_train_hooks hooks = {.ctx = f, .step = on_step, .notice = on_notice, .turn = on_turn};
    co_train_summary summary;
    co_plan *plan = NULL;
    void *fields = NULL;

    CO_ASSERT(range, "there is a schedule to search by");
    co_err err = make_schedule(&cfg, range, &fields);
    spec.cfg = &cfg;
    spec.schedule = range;
    spec.schedule_cfg = fields;
    if (!err)
        err = co_plan_new(&plan, &spec);
    if (!err) {
        err = co_train_run(plan, &hooks, &summary);
        if (f->curve.over)
            err = CO_OK; /* ended by us */
        else if (!err && summary.status == CO_STATUS_STOPPED)
            err = co_fail(
                CO_ESTOP,
                "stopped while looking for a learning rate: nothing was written, so there is nothing to "
                "continue from");
        else if (err)
            co_fail_in(err, "tune.lr");
    }
    co_plan_free(plan);
    if (fields)
        co_options_fini(range->options, fields);
    co_free(fields);
    return err;
}

/* --- the words ------------------------------------------------------------------------------------------ */
struct only {
    int pairs;
    bool rate; /* one of them sets the rate or asks for a search */
};

static void see(void *ctx, const char *key, const char *value)
{
    struct only *o = ctx;

    (void)value;
    o->pairs++;
    o->rate |= strcmp(key, "tune.lr") == 0 || strcmp(key, "optim.lr") == 0;
}

/* Does this word only set the rate or ask for the search? */
static bool is_replaced(const char *word)
{
    struct only o = {0};

    if (co_conf_parse_word(word, see, &o) != CO_OK)
        co_errclear();
    return o.pairs == 1 && o.rate;
}

/* Removes the words that asked for the search and adds optim.lr=FOUND at the end. */
static co_err use_found(line *l, double found)
{
    const char **held = co_array((size_t)l->n + 3, sizeof *held),
               **words = held + 1; /* room for one word in front and two at the end */
    int n = 0;

    if (!held || !(l->found = co_sprintf("optim.lr=%.3g", found))) {
        co_free(held);
        return CO_ENOMEM;
    }
    for (int i = 0; i < l->n; i++)
        if (!is_replaced(l->words[i]))
            words[n++] = l->words[i];
    words[n++] = l->found;
    co_free(l->held);
    l->held = held;
    l->words = words;
    l->n = n;
    return CO_OK;
}

static co_err reopen(training *s, line *l)
{
    app_close(&s->app);
    CO_TRY(app_open(&s->app, l));
    if (s->app.cfg->tune_lr) { /* a configuration file asked for the search */
        l->words[l->n++] = "tune.lr=false";
        app_close(&s->app);
        CO_TRY(app_open(&s->app, l));
    }
    return app_find_resume(&s->app, l);
}

static co_err search_and_use(training *s, line *l, struct search *f)
{
    const co_train_cfg *c = s->app.cfg;

    co_signals_hold(); /* from the first message on, a signal to stop gets an answer */
    f->steps = c->tune_steps;
    f->was = s->app.spec.optim->lr(s->app.spec.optim_cfg);
    CO_TRY(lr_curve_init(&f->curve, (size_t)c->tune_steps));
    CO_TRY(s->job ? co_console_open(&f->console, -1, CO_CONSOLE_QUIET)
                  : co_console_open(&f->console, STDERR_FILENO,
                                    c->console <= CO_CONSOLE_QUIET ? (co_console_style)c->console
                                                                   : CO_CONSOLE_AUTO));
    co_console_line(f->console, "tune      looking for a learning rate: %lld steps, %g to %g",
                    (long long)f->steps, c->tune_min, c->tune_max);
    CO_TRY(run_search(s, f));
    CO_TRY(lr_curve_suggest(&f->curve));
    CO_TRY(use_found(l, f->curve.lr[f->curve.at]));
    CO_TRY(reopen(s, l));
    f->found = s->app.spec.optim->lr(s->app.spec.optim_cfg);
    return CO_OK;
}

co_err tune_search(training *s, line *l)
{
    if (!s->app.cfg->tune_lr)
        return CO_OK;
    CO_TRY(check(s));
    s->search = co_zalloc(sizeof *s->search);
    if (!s->search)
        return CO_ENOMEM;
    co_err err = search_and_use(s, l, s->search);
    co_console_close(s->search->console); /* the bar ends here */
    s->search->console = NULL;
    if (err)
        tune_free(s);
    return err;
}

void tune_free(training *s)
{
    if (s->search)
        lr_curve_fini(&s->search->curve);
    co_free(s->search);
    s->search = NULL;
}

/* --- the record ----------------------------------------------------------------------------------------- */
static co_err write_csv(training *s)
{
    const lr_curve *c = &s->search->curve;
    co_str text = {0};

    co_str_add(&text, "step,lr,loss,smoothed\n");
    for (size_t i = 0; i < c->n; i++) {
        const double row[] = {c->lr[i], c->loss[i], c->smooth[i]};
        co_str_addf(&text, "%zu", i + 1);
        for (size_t k = 0; k < CO_COUNT(row); k++) {
            co_str_add(&text, ",");
            co_str_addf64(&text, row[k]);
        }
        co_str_add(&text, "\n");
    }
    co_err err = co_str_err(&text);
    if (!err)
        err = co_folder_write(s->folder, "lr_find.csv", co_str_text(&text), text.len);
    co_str_fini(&text);
    return err;
}

/* Does the terminal's locale lack UTF-8? */
static bool only_ascii(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < CO_COUNT(names); i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return !strcasestr(v, "utf-8") && !strcasestr(v, "utf8");
    }
    return false;
}

static void tell_lines(training *s, const char *at)
{
    while (*at) {
        int n = (int)strcspn(at, "\n");
        tell(s, "%.*s", n, at);
        at += n + (at[n] == '\n');
    }
}

static co_err show(training *s, co_plot *p)
{
    co_str text = {0};

    co_plot_svg(&text, p);
    co_err err = co_str_err(&text);
    if (!err)
        err = co_folder_write(s->folder, "lr_find.svg", co_str_text(&text), text.len);
    co_str_clear(&text);
    p->title = NULL; /* the line before says it */
    p->ascii = only_ascii();
    co_plot_terminal(&text, p);
    if (!err && !text.failed)
        tell_lines(s, co_str_text(&text));
    co_str_fini(&text);
    return err;
}

/* How many points to draw: without the steep rise at the end, which would flatten the rest of the curve. */
static size_t worth_seeing(const lr_curve *c)
{
    size_t n = c->n;
    double top = c->smooth[0];

    for (size_t i = 0; i <= c->at; i++)
        top = fmax(top, c->smooth[i]);
    while (n > c->at + 2 && c->smooth[n - 1] > 1.1 * top)
        n--;
    return n;
}

co_err tune_record(training *s)
{
    const struct search *f = s->search;
    char label[64];

    if (!f)
        return CO_OK;
    const lr_curve *c = &f->curve;
    size_t n = worth_seeing(c);
    co_plot_line lines[] = {{.name = "loss", .x = c->lr, .y = c->loss, .n = n, .faint = true},
                            {.name = "smoothed", .x = c->lr, .y = c->smooth, .n = n}};
    co_plot_mark mark = {c->lr[c->at], c->smooth[c->at], label};
    co_plot p = {.title = "Looking for a learning rate",
                 .x_label = "learning rate",
                 .y_label = "loss",
                 .log_x = true,
                 .line = lines,
                 .lines = CO_COUNT(lines),
                 .mark = &mark,
                 .marks = 1};

    snprintf(label, sizeof label, "%.3g: the loss falls fastest", f->found);
    CO_TRY(write_csv(s));
    CO_TRY(show(s, &p));
    if (!c->over && c->at + EDGE >= c->n)
        tell(s, "tune      the loss still falls at the end of the range: a larger tune.lr_max may find a "
                "better rate");
    tell(s, "tune      optim.lr=%.3g (was %g)", f->found, f->was);
    co_event_json(s->folder, json_pack("{s:s, s:i, s:f, s:f}", "name", "lr_find", "step", 0, "lr", f->found,
                                       "was", f->was));
    return CO_OK;
}
