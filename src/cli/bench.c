/* bench.c -- `cohort bench`: hands the benches (src/bench) what only the command line can make: a training's plan. */
#include "bench/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/train_int.h"

struct planned {
    training s;
    line l;
    char **argv; /* "bench" and the words */
};

static void close_plan(void *held)
{
    struct planned *p = held;

    if (!p)
        return;
    if (p->s.plan || p->s.app.conf)
        training_close(&p->s);
    line_free(&p->l);
    co_free(p->argv);
    co_free(p);
}

static co_err open_plan(co_plan **plan, void **held, const char *const *words)
{
    struct planned *p = co_zalloc(sizeof *p);
    int n = 0;

    while (words[n])
        n++;
    if (p)
        p->argv = co_array((size_t)n + 2, sizeof *p->argv);
    if (!p || !p->argv) {
        co_free(p);
        return CO_ENOMEM;
    }
    p->s.began_ns = co_now_ns();
    p->argv[0] = (char *)(uintptr_t) "bench";
    for (int i = 0; i < n; i++)
        p->argv[i + 1] = (char *)(uintptr_t)words[i];
    co_err err = line_parse(&p->l, n + 1, p->argv, true, NULL);
    if (err) {
        co_free(p->argv);
        co_free(p);
        return err;
    }
    err = training_plan(&p->s, &p->l);
    if (err) {
        close_plan(p);
        return err;
    }
    *plan = p->s.plan;
    *held = p;
    return CO_OK;
}

int cmd_bench(int argc, char **argv)
{
    return co_bench_run(argc, argv, &(co_bench_planner){open_plan, close_plan});
}
