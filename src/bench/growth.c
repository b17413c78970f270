/* growth.c -- `cohort bench growth`: how the cost of a sample grows with the batch, the size of pictures, the
 * depth of the model or the length of sequences, here and in PyTorch.
 *
 * The points of an axis are measured one after the other. At each point cohort and PyTorch take turns; the
 * arms are those of `cohort bench vs-torch`. cohort divides the CPUs into ranks and threads as `cohort train`
 * does, and PyTorch gets as many threads. The first losses are compared once for each model, the number of
 * parameters always.
 *
 * A sample of a larger picture costs more, and should. So a point also says what a useful FLOP costs: the
 * plan of the training counts them, without products with padding and masked keys. Where the cost of a FLOP
 * rises much from a point to the next, there is a cliff (growth_report.c).
 */
#include "bench/growth_int.h"

#include <math.h>

#include "base/fs.h"
#include "train/measure.h"

enum { STEPS_LEAST = 3, STEPS_MOST = 40 };
static const double timed_gflop = 100; /* of a point: some seconds on two cores */

static co_err read_line(growth *g, int argc, char **argv)
{
    const char *axis = NULL, *points = NULL, *rounds = NULL, *steps = NULL;
    bool json = false; /* it always is */

    *g = (growth){.rounds = 2};
    CO_TRY(co_flags_parse("bench growth", argc, argv,
                          (const co_flag[]){{"--axis", "NAME", .value = &axis},
                                            {"--points", "N,N,...", .value = &points},
                                            {"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--plots", "DIR", .value = &g->plots},
                                            {"--python", "PROGRAM", .value = &g->v.torch.python},
                                            {"--script", "FILE", .value = &g->v.script_given},
                                            {"--json", .on = &json},
                                            {0}}));
    CO_TRY(growth_find_axis(&g->axis, axis));
    CO_TRY(growth_read_points(g, points));
    CO_TRY(bench_number("growth", "--rounds", rounds, VERSUS_ROUNDS, &g->rounds));
    CO_TRY(bench_number("growth", "--steps", steps, 1000, &g->steps));
    g->v.rounds = g->rounds;
    g->v.warmup = 1;
    return g->axis->set(&g->v, g->want[0]);
}

/* --- what a point is ------------------------------------------------------------------------------------ */
/* Useful GFLOPs of the first slice's passes for one of the task's unit. */
static co_err count_flops(co_plan *plan, double units, double *gflop)
{
    co_calls *calls;
    double sum = 0;

    CO_TRY(co_calls_open(&calls, plan));
    const co_call_facts *facts = co_calls_facts(calls);
    for (int i = 0; i < co_calls_count(calls); i++)
        sum += facts[i].counted ? facts[i].useful : 0;
    *gflop = 1e-9 * sum / (units * (double)co_calls_samples(calls));
    co_calls_close(calls);
    return sum > 0 ? CO_OK : co_fail(CO_EFAIL, "bench growth: the training has no FLOPs");
}

/* How cohort would divide the CPUs, and what the training computes. */
static co_err plan_point(growth *g, growth_point *p, const co_bench_planner *planner)
{
    versus_words w;
    co_plan *plan;
    void *held;

    g->v.ranks = g->v.threads = 0;
    CO_TRY(versus_words_init(&w, &g->v, 1, NULL));
    co_err err = planner->open(&plan, &held, w.word);
    if (!err) {
        g->v.ranks = p->ranks = co_plan_facts_of(plan)->ranks;
        g->v.threads = p->threads = co_plan_facts_of(plan)->threads;
        g->v.torch_threads = p->ranks * p->threads;
        err = count_flops(plan, p->units, &p->gflop);
        planner->close(held);
    }
    versus_words_fini(&w);
    return err;
}

static int choose_steps(const growth *g, const growth_point *p)
{
    double steps = ceil(timed_gflop / (p->gflop * p->units * p->batch));

    if (g->steps)
        return g->steps;
    return steps < STEPS_LEAST ? STEPS_LEAST : steps > STEPS_MOST ? STEPS_MOST : (int)steps;
}

static co_err set_up(growth *g, growth_point *p, int point, const co_bench_planner *planner)
{
    versus *v = &g->v;

    CO_TRY(g->axis->set(v, point));
    *p = (growth_point){.point = point, .batch = v->batch, .size = v->size, .model = v->task->name};
    p->units = v->task->text ? v->size : 1;
    v->steps = g->steps ? g->steps : STEPS_MOST; /* for the text */
    if (v->task->text)
        CO_TRY(versus_make_text(v));
    CO_TRY(plan_point(g, p, planner));
    p->steps = v->steps = choose_steps(g, p);
    versus_choose_arms(v, true);
    return CO_OK;
}

/* --- in turn -------------------------------------------------------------------------------------------- */
static void take_figures(growth_point *p, const versus *v)
{
    const versus_arm *best = &v->arm[1];
    double ratio[VERSUS_ROUNDS];

    for (const versus_arm *arm = best + 1; arm < v->arm + v->arms; arm++)
        if (duel_median(arm->rate, v->rounds) > duel_median(best->rate, v->rounds))
            best = arm;
    for (int i = 0; i < v->rounds; i++)
        ratio[i] = v->arm[0].rate[i] / best->rate[i];
    p->compared_with = versus_arm_name(best);
    p->ms[0] = 1e3 / duel_median(v->arm[0].rate, v->rounds);
    p->ms[1] = 1e3 / duel_median(best->rate, v->rounds);
    p->ratio = duel_median(ratio, v->rounds);
}

static co_err measure_point(growth *g, growth_point *p)
{
    versus *v = &g->v;

    for (int round = 0; round < v->rounds; round++)
        for (versus_arm *arm = v->arm; arm < v->arm + v->arms; arm++) {
            CO_TRY(versus_run_arm(v, arm, round));
            co_say("%s %d, round %d of %d: %-20s %.1f %s/s", g->axis->name, p->point, round + 1, v->rounds,
                   versus_arm_name(arm), arm->rate[round], v->task->unit);
        }
    take_figures(p, v);
    return CO_OK;
}

static co_err measure(growth *g, const co_bench_planner *planner)
{
    const versus_task *compared = NULL;

    for (int i = 0; i < g->n; i++) {
        CO_TRY(set_up(g, &g->at[i], g->want[i], planner));
        if (g->v.task != compared)
            CO_TRY(versus_compare_losses(&g->v));
        compared = g->v.task;
        CO_TRY(measure_point(g, &g->at[i]));
        growth_print_point(g, &g->at[i]);
    }
    growth_print_axis(g);
    return g->plots ? growth_plot(g) : CO_OK;
}

int bench_growth(int argc, char **argv, const co_bench_planner *planner)
{
    growth *g = co_zalloc(sizeof *g);
    co_err err = g ? read_line(g, argc, argv) : CO_ENOMEM;

    if (!err)
        err = torch_find(&g->v.torch, "growth", "versus.py", g->v.script_given);
    if (!err)
        err = versus_check_torch(&g->v);
    if (!err && g->plots)
        err = co_fs_mkdirs(g->plots);
    if (err) {
        if (g)
            json_decref(g->v.versions);
        co_free(g);
        return co_say_error(CO_EINPUT);
    }
    err = trial_folder(g->v.root);
    if (!err)
        err = measure(g, planner);
    int status = trial_ended(err, g->v.root);
    json_decref(g->v.versions);
    co_free(g);
    return status;
}
