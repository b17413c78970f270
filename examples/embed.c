/* embed.c -- training from inside a program: it gets a callback per step, stops when the accuracy is high
 * enough, then evaluates and predicts.
 *
 *     ./embed            trains on the built-in digits until 90 % are right, then predicts ten
 */
#include <cohort.h>
#include <stdio.h>

struct progress {
    int64_t steps;
    double best;
};

static int on_step(void *ctx, const cohort_step *s)
{
    struct progress *p = ctx;

    p->steps++;
    if (s->step % 20 == 0)
        printf("step %3lld  loss %.4f\n", (long long)s->step, s->loss);
    return 0;
}

static int on_eval(void *ctx, const cohort_eval *e)
{
    struct progress *p = ctx;

    if (e->split != COHORT_VAL)
        return 0;
    p->best = e->metric > p->best ? e->metric : p->best;
    printf("epoch %lld: %.1f %% right\n", (long long)e->epoch + 1, 100 * e->metric);
    return e->metric >= 0.90; /* not 0: save and stop; a few more steps may run before all ranks stop */
}

static void on_prediction(void *ctx, const cohort_prediction *p)
{
    (void)ctx;
    printf("digit %lld looks like a %lld (%.0f %%)\n", (long long)p->id, (long long)p->choice,
           100 * p->probability);
}

static int failed(const char *what)
{
    fprintf(stderr, "embed: %s: %s\n", what, cohort_errmsg());
    return 1;
}

int main(void)
{
    static const char *const words[] = {"data=digits", "model=mlp", "model.hidden=32",
                                        "trainer.max_epochs=1000", "trainer.devices=2"};
    struct progress progress = {0, 0};
    cohort_job job = {.words = words, .n_words = 5, .ctx = &progress, .on_step = on_step, .on_eval = on_eval};
    cohort_summary s;

    if (cohort_train(&job, &s) != COHORT_OK)
        return failed("train");
    printf("%s after %lld steps (%lld seen here); weights %s\n",
           s.status == COHORT_STOPPED ? "stopped" : "done", (long long)s.steps, (long long)progress.steps,
           s.weights_sha256);

    /* The run's folder holds its configuration, so nothing has to be repeated here. */
    char from[sizeof s.run_dir + 16];
    snprintf(from, sizeof from, "ckpt_path='%s'", s.run_dir);
    const char *ckpt_words[] = {from};
    cohort_job after = {.words = ckpt_words, .n_words = 1, .on_prediction = on_prediction};
    cohort_eval e;
    if (cohort_evaluate(&after, COHORT_TEST, &e) != COHORT_OK)
        return failed("evaluate");
    printf("test: %.1f %% of %lld right; weights %s\n", 100 * e.metric, (long long)e.count, e.weights_sha256);
    return cohort_predict(&after, COHORT_TEST, 10) == COHORT_OK ? 0 : failed("predict");
}
