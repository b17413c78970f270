/* trackers.c -- what it costs that a run is written up. Three questions, each answered by runs in turn (duel.c):
 *
 *     trackers   csv, tensorboard, prometheus and wandb (offline) against none: samples/s
 *     wandb      wandb with live upload, to a server on this machine that takes every line, against none: samples/s
 *     book       the log book at the end, against none: how much later the program ends
 *
 * digits with a small network and a line of the record every 10 steps, without checkpoints. Unless told, a first run
 * finds how many steps take ARM_S seconds.
 *
 * The rates of a machine that others use waver by several percent from one run to the next. So there are many short
 * runs, and the report has the interval in which the median of the rounds' ratios lies. What does not waver is the
 * CPU time that a run takes beside its ranks (trackers, supervisor). Where the ranks keep all CPUs busy, that share of
 * them is gone. Ranks wait for one another, so what is taken from one can hold up all: at worst the share times the
 * ranks.
 */
#include "bench/bench_int.h"

#include <math.h>
#include <string.h>

enum { BATCH = 64, ARM_S = 4, TRIED_STEPS = 500, BOOK_STEPS = 20 };

typedef struct what {
    const char *name;     /* of the question */
    const char *off, *on; /* the words that differ */
    const char *names[2];
    int rounds_times; /* rounds are cheap: so many times as many */
} what;

static const what questions[] = {
    {"trackers", "logger=none", "logger=[csv,tensorboard,prometheus,wandb]", {"none", "all trackers"}, 1},
    {"wandb", "logger=none", "logger=wandb", {"none", "wandb online"}, 1},
    {"book", "run.book=false", "run.book=true", {"no book", "a book"}, 2},
};

typedef struct asked {
    const what *what;
    const char *root, *only;
    int rounds, steps;
} asked;

static bool is_book(const what *w)
{
    return strcmp(w->name, "book") == 0;
}

static co_err train(const asked *q, int arm, int steps, trial *t)
{
    char max_steps[48];
    const char *words[] = {"data=digits",
                           is_book(q->what) ? "model=mlp" : "model=cnn",
                           "data.batch_size=64",
                           max_steps,
                           is_book(q->what) ? "logger=none" : "run.book=false",
                           arm ? q->what->on : q->what->off,
                           strcmp(q->what->name, "wandb") == 0 ? "logger.wandb.mode=online"
                                                               : "logger.wandb.mode=offline",
                           "log_every=10",
                           "trainer.max_epochs=10000000",
                           "callbacks.model_checkpoint.enabled=false",
                           "test=false",
                           "console=quiet",
                           NULL};

    snprintf(max_steps, sizeof max_steps, "trainer.max_steps=%d", steps);
    return trial_once(t, q->root, words);
}

static co_err once(void *ctx, int arm, int round, trial *t)
{
    const asked *q = ctx;

    (void)round;
    return train(q, arm, q->steps, t);
}

/* How many steps take ARM_S seconds, without trackers. */
static co_err choose_steps(asked *q)
{
    trial t = {0};
    co_err err = train(q, 0, TRIED_STEPS, &t);
    double rate = err ? 0 : trial_number(&t, "samples_per_s") / BATCH;

    trial_free(&t);
    q->steps = (int)fmin(fmax(ceil(rate * ARM_S / 100) * 100, TRIED_STEPS), 10000000);
    if (!err)
        co_say("%s: %d steps a run", q->what->name, q->steps);
    return err;
}

static json_t *report(const asked *q, const duel *d)
{
    double low, high, late[DUEL_ROUNDS];
    json_t *v = json_pack("{s:s, s:s, s:i, s:i, s:s}", "task", q->what->name, "data", "digits", "rounds",
                          d->rounds, "steps", q->steps, "weights_sha256", d->sha);

    for (int i = 0; i < d->rounds; i++)
        late[i] = 1e3 * (d->secs[1][i] - d->secs[0][i]);
    duel_interval(d->ratio, d->rounds, &low, &high);
    if (is_book(q->what)) {
        json_object_set_new(v, "without_ms", json_real(1e3 * duel_median(d->secs[0], d->rounds)));
        json_object_set_new(v, "with_ms", json_real(1e3 * duel_median(d->secs[1], d->rounds)));
        json_object_set_new(v, "ends_later_ms", json_real(duel_median(late, d->rounds)));
        return v;
    }
    json_object_set_new(v, "without_samples_per_s", json_real(duel_rate(d, 0)));
    json_object_set_new(v, "with_samples_per_s", json_real(duel_rate(d, 1)));
    json_object_set_new(v, "without_step_ms", json_real(1e3 * BATCH / duel_rate(d, 0)));
    json_object_set_new(v, "with_step_ms", json_real(1e3 * BATCH / duel_rate(d, 1)));
    json_object_set_new(v, "ratio", json_real(duel_ratio(d)));
    json_object_set_new(v, "ratio_low", json_real(low));
    json_object_set_new(v, "ratio_high", json_real(high));
    json_object_set_new(v, "cpu_ratio", json_real(duel_cpu_ratio(d)));
    json_object_set_new(v, "cpu_beside_ranks", json_real(duel_beside(d)));
    json_object_set_new(v, "ratio_by_cpu", json_real(1 / (1 + duel_beside(d))));
    json_object_set_new(v, "aim", json_real(0.99));
    return v;
}

static void print(json_t *take)
{
    char *text = json_dumps(take, JSON_COMPACT | JSON_REAL_PRECISION(6));

    if (text)
        puts(text);
    co_free(text);
    json_decref(take);
}

static co_err answer(asked *q)
{
    static duel d;
    receiver server;
    bool live = strcmp(q->what->name, "wandb") == 0;
    int given = q->steps;

    d = (duel){.rounds = q->rounds * q->what->rounds_times,
               .name = {q->what->names[0], q->what->names[1]},
               .by_time = is_book(q->what)};
    d.rounds = d.rounds < DUEL_ROUNDS ? d.rounds : DUEL_ROUNDS;
    if (live)
        CO_TRY(receiver_start(&server));
    if (is_book(q->what))
        q->steps = BOOK_STEPS;
    co_err err = q->steps ? CO_OK : choose_steps(q);
    if (!err)
        err = duel_run(&d, once, q);
    if (live)
        receiver_stop(&server);
    json_t *v = err ? NULL : report(q, &d);
    if (v && live)
        json_object_set_new(v, "lines_received", json_integer(atomic_load(&server.lines)));
    if (!err && live && atomic_load(&server.runs) != d.rounds) {
        err = co_fail(CO_EFAIL, "%d runs were uploaded to their end, not %d", atomic_load(&server.runs),
                      d.rounds);
        json_decref(v);
        v = NULL;
    }
    if (v)
        print(v);
    q->steps = given;
    return err;
}

static co_err check_only(const char *only)
{
    for (size_t i = 0; i < CO_COUNT(questions) && only; i++)
        if (strcmp(only, questions[i].name) == 0)
            return CO_OK;
    return only ? co_fail(CO_EINPUT, "bench trackers: --only %s; give trackers, wandb or book", only) : CO_OK;
}

int bench_trackers(int argc, char **argv)
{
    char root[64];
    asked q = {.root = root, .rounds = 20};
    const bench_flag flags[] = {
        {"--rounds", 1, DUEL_ROUNDS, &q.rounds}, {"--steps", 20, 10000000, &q.steps}, {0}};
    co_err err = bench_flags("trackers", argc, argv, flags, &(co_flag){"--only", "NAME", .value = &q.only});

    if (!err)
        err = check_only(q.only);
    if (err)
        return co_say_error(err);
    err = trial_folder(root);
    for (size_t i = 0; i < CO_COUNT(questions) && !err; i++) {
        q.what = &questions[i];
        if (!q.only || strcmp(q.only, q.what->name) == 0)
            err = answer(&q);
    }
    return trial_ended(err, root);
}
