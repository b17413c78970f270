/* versus_report.c -- the figures of `cohort bench vs-torch` as one JSON object.
 *
 * Ratios above 1 say that cohort is faster. `ratio` is against PyTorch's fastest setting, `cpu_ratio` against the
 * setting that takes the least CPU time for the same work; other programs on the machine disturb it less. Both are
 * medians over the rounds of the ratio within a round, whose two runs met the same machine. */
#include "bench/versus_int.h"

#include <math.h>
#include <string.h>

/* The median of n numbers, which are not reordered. */
static double middle(const double *x, int n)
{
    double copy[VERSUS_ROUNDS];

    memcpy(copy, x, (size_t)n * sizeof *copy);
    return median(copy, n);
}

static double middle_ratio(const double *a, const double *b, int n)
{
    double r[VERSUS_ROUNDS];

    for (int i = 0; i < n; i++)
        r[i] = a[i] / b[i];
    return median(r, n);
}

static double extreme(const double *x, int n, bool most)
{
    double found = x[0];

    for (int i = 1; i < n; i++)
        found = (most ? x[i] > found : x[i] < found) ? x[i] : found;
    return found;
}

static json_t *arm_json(const versus *v, const versus_arm *arm)
{
    int n = arm->dropped ? 1 : v->rounds; /* what was dropped has the figures of round 0 */
    json_t *runs = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(runs, co_json_num(arm->rate[i]));
    json_t *j = json_pack("{s:f, s:f, s:f, s:I, s:f, s:o}", "per_s", middle(arm->rate, n), "least",
                          extreme(arm->rate, n, false), "most", extreme(arm->rate, n, true), "peak_pss_bytes",
                          (json_int_t)arm->peak, "first_step_s", middle(arm->start_s, n), "runs", runs);
    if (middle(arm->cpu_s, n) > 0)
        json_object_set_new(j, "cpu_s_each", json_real(middle(arm->cpu_s, n)));
    if (arm->dropped)
        json_object_set_new(j, "dropped", json_string("slow in round 0, not run again"));
    return j;
}

/* PyTorch's arm with the highest rate, or with the least CPU time. */
static const versus_arm *best_of(const versus *v, bool by_cpu)
{
    const versus_arm *best = NULL;

    for (const versus_arm *arm = v->arm + 1; arm < v->arm + v->arms; arm++) {
        if (arm->dropped)
            continue;
        if (!best || (by_cpu ? middle(arm->cpu_s, v->rounds) < middle(best->cpu_s, v->rounds)
                             : middle(arm->rate, v->rounds) > middle(best->rate, v->rounds)))
            best = arm;
    }
    CO_ASSERT(best, "the fastest setting is never dropped");
    return best;
}

static void add_ratios(json_t *j, const versus *v)
{
    const versus_arm *ours = &v->arm[0], *best = best_of(v, false), *frugal = best_of(v, true);

    json_object_set_new(j, "compared_with", json_string(versus_arm_name(best)));
    json_object_set_new(j, "ratio", json_real(middle_ratio(ours->rate, best->rate, v->rounds)));
    double cpu_ratio = middle_ratio(frugal->cpu_s, ours->cpu_s, v->rounds);
    if (isfinite(cpu_ratio)) {
        json_object_set_new(j, "cpu_compared_with", json_string(versus_arm_name(frugal)));
        json_object_set_new(j, "cpu_ratio", json_real(cpu_ratio));
    }
    if (best->peak > 0) /* 0: it ended before its memory was measured */
        json_object_set_new(j, "memory_ratio", json_real((double)ours->peak / (double)best->peak));
    json_object_set_new(j, "torch_libraries_pss_bytes", json_integer((json_int_t)best->libraries));
    if (best->peak > best->libraries) /* what training itself takes there */
        json_object_set_new(j, "memory_ratio_without_libraries",
                            json_real((double)ours->peak / (double)(best->peak - best->libraries)));
    json_object_set_new(j, "start_ratio", json_real(middle_ratio(ours->start_s, best->start_s, v->rounds)));
}

static void add_sameness(json_t *j, const versus *v)
{
    bool losses = v->task->kind == VERSUS_TRAIN;

    json_object_set_new(
        j, "compared",
        json_string(losses ? "number of parameters; loss of the first step, from the same weights and batch"
                           : "number of parameters"));
    if (losses)
        json_object_set_new(j, "first_loss",
                            json_pack("{s:f, s:f, s:f}", "cohort", v->first_loss[0], "torch", v->first_loss[1],
                                      "relative", fabs(v->first_loss[0] / v->first_loss[1] - 1)));
}

void versus_report(const versus *v)
{
    char cpu[128];
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I}", "task", "vs-torch", "model", v->task->name,
                  "unit", v->task->unit, "batch", v->batch, "ranks", v->ranks, "threads", v->threads,
                  "rounds", v->rounds, "steps", v->steps, "parameters", (json_int_t)v->parameters);

    if (v->task->size_key)
        json_object_set_new(j, "size", json_integer(v->size));
    for (int i = 0; i < v->arms; i++)
        json_object_set_new(j, versus_arm_name(&v->arm[i]), arm_json(v, &v->arm[i]));
    add_ratios(j, v);
    add_sameness(j, v);
    cpu_fact("model name", cpu, sizeof cpu);
    json_object_set_new(j, "kernels", json_string(v->kernels));
    json_object_set_new(j, "versions", json_incref(v->versions));
    json_object_set_new(j, "cpu", json_string(cpu));
    json_object_set_new(j, "cpu_flags", cpu_vector_flags());
    co_json_print(j);
}
