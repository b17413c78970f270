/* profile.c -- trainer.profiler=simple: where a slice's time goes, by kind of operator and for the slowest
 * single operators. Measured after the run, on one slice in this process, so that the run itself is not
 * slowed down. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/train_int.h"
#include "train/measure.h"

struct kind {
    char name[48];
    int calls;
    double ms;
};

static int by_ms(const void *a, const void *b)
{
    double x = ((const co_op_time *)a)->ms, y = ((const co_op_time *)b)->ms;

    return (x < y) - (x > y);
}

static int kinds_by_ms(const void *a, const void *b)
{
    double x = ((const struct kind *)a)->ms, y = ((const struct kind *)b)->ms;

    return (x < y) - (x > y);
}

/* "conv2d 'layer1.0.conv1'" is a conv2d. */
static int add_kind(struct kind *kinds, int n, const co_op_time *op)
{
    char name[48];
    int i = 0;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(op->name, " '#"), op->name);
    while (i < n && strcmp(kinds[i].name, name) != 0)
        i++;
    if (i == n)
        kinds[n++] = (struct kind){.calls = 0};
    memcpy(kinds[i].name, name, sizeof name);
    kinds[i].calls++;
    kinds[i].ms += op->ms;
    return n;
}

void profile_tell(training *s)
{
    enum { DEAREST = 10 };
    co_op_time *op;
    int n, n_kinds = 0;
    double all = 0;

    if (s->app.cfg->profiler == 0 || !s->summary.weights_sha256[0])
        return;
    if (co_plan_profile(s->plan, &op, &n) != CO_OK) {
        tell(s, "profiler  %s", co_errmsg());
        return;
    }
    struct kind *kinds = co_array((size_t)n + 1, sizeof *kinds);
    for (int i = 0; kinds && i < n; i++) {
        n_kinds = add_kind(kinds, n_kinds, &op[i]);
        all += op[i].ms;
    }
    if (kinds)
        qsort(kinds, (size_t)n_kinds, sizeof *kinds, kinds_by_ms);
    qsort(op, (size_t)n, sizeof *op, by_ms);
    tell(s, "profiler  a slice takes %.3f ms on one rank, %d calls; by operator:", all, n);
    for (int i = 0; i < n_kinds; i++)
        tell(s, "  %-28s %5d calls  %9.3f ms  %5.1f %%", kinds[i].name, kinds[i].calls, kinds[i].ms,
             100 * kinds[i].ms / all);
    tell(s, "          the dearest calls:");
    for (int i = 0; i < n && i < DEAREST; i++)
        tell(s, "  %9.3f ms  %5.1f %%  %s%s", op[i].ms, 100 * op[i].ms / all, op[i].name,
             op[i].backward ? " (backward)" : "");
    co_free(kinds);
    co_free(op);
}
