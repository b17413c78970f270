/* Parameter rules, the average of the weights, clipping, schedules, early stopping. Each depends on the
 * configuration alone: the result is the same for any number of ranks, after deaths of ranks, and after a
 * stop. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/maths.h"
#include "harness.h"
#include "train/program.h"
#include "train/stage.h"

#define ALL                                                                                                  \
    "data=digits model=cnn optim=sgd optim.lr=0.05 optim.momentum=0.9 optim.nesterov=true "                  \
    "optim.weight_decay=5e-4 "                                                                               \
    "optim.no_decay=norm_bias optim.ema=0.98 optim.layer_decay=0.9 'optim.lr_groups=\"fc*:2\"' "             \
    "trainer.clip_norm=1 "                                                                                   \
    "trainer.clip_value=0.5 loss.label_smoothing=0.1 schedule=one_cycle "                                    \
    "trainer.max_epochs=2 "

TEST(a_whole_recipe_gives_the_same_weights_for_any_number_of_ranks_and_with_deaths)
{
    outcome one = program_run("one", ALL "trainer.devices=1");

    CHECK(one.status == 0, "%s", one.out);
    for (int ranks = 2; ranks <= 3; ranks++) {
        char dir[16];
        snprintf(dir, sizeof dir, "run%d", ranks);
        outcome o = program_run(dir, ALL "trainer.devices=%d", ranks);
        program_same(&one, &o, dir);
    }
    outcome kills =
        program_run("kills", ALL "trainer.devices=2 fault.phase=random fault.kills=8 fault.mean_ms=15");
    program_same(&one, &kills, "with kills");
}

static void continues(const char *words, const char *until)
{
    char dir[32] = "whole", part[32] = "part";
    outcome whole = program_run(dir, "%s trainer.devices=2", words);

    outcome first = program_run(part, "%s trainer.devices=1 %s", words, until);
    CHECK(first.status == 0, "%s", first.out);
    outcome rest = program_run(part, "%s trainer.devices=2 ckpt_path=auto", words);
    program_same(&whole, &rest, words);
}

TEST(a_recipe_with_an_average_continues_to_the_same_weights)
{
    continues(
        "data=digits model=mlp optim=adamw optim.ema=0.95 optim.no_decay=norm_bias trainer.max_epochs=3",
        "trainer.max_steps=30");
}

TEST(a_plateau_continues_with_what_it_had_seen)
{
    continues("data=digits model=mlp optim=sgd optim.lr=0.5 schedule=plateau schedule.patience=0 "
              "schedule.threshold=0.2 trainer.max_epochs=6",
              "trainer.max_epochs=3");
    test_run drops = test_sh("grep -o '\"lr\", *\"value\": *[0-9.e-]*' whole/events.jsonl | sort -u | wc -l");
    /* else nothing was to be kept */
    CHECK(drops.status == 0 && atoi(drops.out) >= 3, "rates: %s", drops.out);
    free(drops.out);
}

/* --- inside --------------------------------------------------------------------------------------------- */
static const char *const small[] = {"model=mlp",         "data=digits",         "optim=sgd",
                                    "optim.lr=0.1",      "model.hidden=16",     "model.dropout=0",
                                    "trainer.devices=1", "trainer.max_steps=5", NULL};

/* One rank, in this process, to the end. */
static co_plan *run_here(const stage *g)
{
    co_plan *plan = stage_plan(g);
    struct rank rank;

    co_fpu_init();
    CHECK_OK(rank_open(&rank, plan, plan->regions, 0, 0, -1));
    rank_loop(&rank);
    rank_close(&rank);
    return plan;
}

static const float *at(const co_plan *plan, const float *space, const char *name)
{
    const co_entry *e = co_layout_find(plan->layout, name);

    CHECK(e, "no %s", name);
    return space + e->offset;
}

static bool moved(const co_plan *plan, const float *first, const char *name)
{
    const co_entry *e = co_layout_find(plan->layout, name);

    return memcmp(at(plan, plan->regions->state, name), first + e->offset, e->count * sizeof *first) != 0;
}

static float *fresh_state(const co_plan *plan)
{
    float *first = calloc(plan->layout->count, sizeof *first);

    co_layout_initialise(plan->layout, first, (uint64_t)plan->cfg.seed);
    return first;
}

TEST(frozen_parameters_stay_and_the_others_move)
{
    stage g;

    stage_open(&g, small);
    stage_set(&g, "optim.freeze=fc1.*");
    co_plan *plan = run_here(&g);
    float *first = fresh_state(plan);
    bool any = false;
    for (int i = 0; i < plan->layout->n; i++) {
        const char *name = plan->layout->entry[i].name;
        bool frozen = strncmp(name, "fc1.", 4) == 0;
        any = any || frozen;
        CHECK(moved(plan, first, name) == !frozen, "%s %s", name, frozen ? "moved" : "stayed");
    }
    CHECK(any, "nothing is called fc1.*");
    free(first);
    co_plan_free(plan);
    stage_close(&g);
}

/* Plain SGD of one step: a rate of half moves half as far. */
TEST(a_group_s_rate_scales_its_steps)
{
    stage g;
    co_plan *plan[2];

    for (int i = 0; i < 2; i++) {
        stage_open(&g, small);
        stage_set(&g, "trainer.max_steps=1");
        if (i)
            stage_set(&g, "optim.lr_groups=*.bias:0.5");
        plan[i] = run_here(&g);
        if (i == 0)
            stage_close(&g);
    }
    float *first = fresh_state(plan[0]);
    for (int i = 0; i < plan[0]->layout->n; i++) {
        const co_entry *e = &plan[0]->layout->entry[i];
        bool bias = strstr(e->name, "bias") != NULL;
        for (size_t q = e->offset; q < e->offset + e->count; q++) {
            double full = plan[0]->regions->state[q] - first[q], mine = plan[1]->regions->state[q] - first[q];
            CHECK(fabs(mine - full * (bias ? 0.5 : 1)) <= 2e-7, "%s: %g, not %g", e->name, mine, full);
        }
    }
    free(first);
    co_plan_free(plan[0]);
    co_plan_free(plan[1]);
    stage_close(&g);
}

TEST(the_average_follows_the_weights_by_its_rule)
{
    stage g;

    stage_open(&g, small);
    stage_set(&g, "optim.ema=0.9");
    stage_set(&g, "trainer.max_steps=1");
    co_plan *plan = run_here(&g);
    CHECK(plan->ema == 0 &&
              memcmp(plan->regions->moment[0], plan->regions->state, plan->layout->count * sizeof(float)) == 0,
          "after one step the average is the weights");
    size_t n = plan->layout->count;
    float *one = malloc(n * sizeof *one);
    memcpy(one, plan->regions->state, n * sizeof *one);
    co_plan_free(plan);
    stage_set(&g, "trainer.max_steps=2");
    plan = run_here(&g);
    co_ema_apply(one, plan->regions->state, n, 0.9, 2);
    CHECK(memcmp(one, plan->regions->moment[0], n * sizeof *one) == 0,
          "the second step's average is not the rule's");
    free(one);
    co_plan_free(plan);
    stage_close(&g);
}

TEST(clipping_by_value_bounds_every_step)
{
    stage g;

    stage_open(&g, small);
    stage_set(&g, "trainer.max_steps=1");
    stage_set(&g, "trainer.clip_value=1e-4");
    co_plan *plan = run_here(&g);
    float *first = fresh_state(plan);
    double most = 0;
    for (size_t i = 0; i < plan->layout->count; i++)
        most = fmax(most, fabs((double)plan->regions->state[i] - first[i]));
    CHECK(most > 0.9e-5 && most < 1.1e-5, "the largest step is %g, not lr * 1e-4", most);
    free(first);
    co_plan_free(plan);
    stage_close(&g);
}

/* --- ends ----------------------------------------------------------------------------------------------- */
#define EARLY                                                                                                \
    "data=digits model=mlp optim=sgd optim.lr=0.3 trainer.max_epochs=30 "                                    \
    "callbacks.early_stopping.patience=2 "                                                                   \
    "callbacks.early_stopping.min_delta=0.05 "

TEST(early_stopping_ends_every_crew_at_the_same_step)
{
    outcome one = program_run("one", EARLY "trainer.devices=1"), o;

    CHECK(one.status == 0 && one.steps % 23 == 0 && one.steps < 30 * 23 && one.steps > 2 * 23,
          "%lld steps\n%s", one.steps, one.out);
    CHECK(test_contains(one.out, "early stop: val/loss has not improved for 2 evaluations"), "%s", one.out);
    CHECK(test_contains(one.out, "test loss"), "it was not tested:\n%s", one.out);
    o = program_run("three", EARLY "trainer.devices=3");
    program_same(&one, &o, "three ranks");
    o = program_run("kills", EARLY "trainer.devices=2 fault.phase=random fault.kills=10 fault.mean_ms=10");
    program_same(&one, &o, "with kills");
    /* What ended early is done: there is nothing to continue. */
    o = program_run("one", EARLY "trainer.devices=2 ckpt_path=auto");
    program_same(&one, &o, "continued");
    o = program_run("more", EARLY "trainer.devices=2 trainer.min_epochs=25");
    CHECK(o.steps >= 25 * 23, "min_epochs was not waited for: %lld steps", o.steps);
}

TEST(a_run_ends_in_good_order_when_its_time_is_over)
{
    outcome o = program_run("run", "data=digits model=mlp trainer.max_epochs=100000 trainer.max_time=1s");

    CHECK(o.status == 0 && strcmp(o.state, "done") == 0, "exit %d, %s\n%s", o.status, o.state, o.out);
    CHECK(test_contains(o.out, "max_time") && test_contains(o.out, "test loss"), "%s", o.out);
    CHECK(program_saved("run"), "nothing saved");
}

TEST(a_duration_is_read_as_people_write_it)
{
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"90s", 90},         {"1.5m", 90},          {"2h", 7200},  {"1d", 86400},
                {"00:00:01:30", 90}, {"1:00:00:00", 86400}, {"02:03", 123}};
    static const char *const bad[] = {"", "s", "90", "-3s", "1:2:3:4:5", "1h30", "nan s", "0s", "1:"};
    uint64_t ns;

    for (size_t i = 0; i < CO_COUNT(good); i++) {
        CHECK_OK(parse_duration(good[i].text, &ns));
        CHECK((double)ns == good[i].seconds * 1e9, "%s: %llu ns", good[i].text, (unsigned long long)ns);
    }
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK_FAILS(parse_duration(bad[i], &ns), CO_EINPUT, "max_time");
}

/* --- checkpoints ---------------------------------------------------------------------------------------- */
TEST(the_best_checkpoints_stay_and_the_best_is_linked)
{
    outcome o = program_run(
        "run", "data=digits model=mlp trainer.max_epochs=8 callbacks.model_checkpoint.save_top_k=3 "
               "callbacks.model_checkpoint.every_n_steps=23 "
               "callbacks.model_checkpoint.monitor=val/loss "
               "'callbacks.model_checkpoint.filename=\"e{epoch:03d}-{step}\"'");
    CHECK(o.status == 0, "%s", o.out);
    CHECK(test_contains(o.out, "best val/loss"), "%s", o.out);
    test_run best =
        test_sh("cd run/checkpoints && least=$(grep -H '\"value\"' e*/manifest.json | sort -t: -k3 -g | "
                "head -1 | cut -d/ -f1) && echo $(ls -d e* | wc -l) $least $(readlink best) && "
                "test \"$least\" = \"$(readlink best)\"");
    int kept = atoi(best.out); /* the best three and the newest two, which may be among them */
    CHECK(best.status == 0 && kept >= 3 && kept <= 5, "%s", best.out);
    free(best.out);
}

TEST(a_run_that_watches_another_value_begins_its_best_anew)
{
    outcome o = program_run("run", "data=digits model=mlp trainer.max_epochs=2");
    CHECK(o.status == 0 && test_contains(o.out, "best val/acc"), "%s", o.out);
    o = program_run("run", "data=digits model=mlp trainer.max_epochs=4 ckpt_path=auto "
                           "callbacks.model_checkpoint.monitor=val/loss");
    CHECK(o.status == 0 && test_contains(o.out, "best val/loss"), "%s", o.out);
    test_run best = test_sh("readlink run/checkpoints/best");
    CHECK(best.status == 0 && test_contains(best.out, "epoch_003"), "best is %s", best.out);
    free(best.out);
}

/* A number of batches is of the run's batches, in the run and after it. */
TEST(a_limit_in_batches_means_the_same_samples_to_train_and_to_test)
{
    outcome o = program_run("run", "data=digits model=mlp trainer.max_epochs=1 trainer.limit_test_batches=2");
    CHECK(o.status == 0 && test_contains(o.out, "(128)"), "%s", o.out);
    test_run r = test_sh("$COHORT test ckpt_path=run");
    CHECK(r.status == 0 && test_contains(r.out, "(128 samples)"), "%s", r.out);
    free(r.out);
}

/* What the run saw with the average is what `cohort test` sees, and not what the weights themselves give. */
TEST(the_average_is_what_is_evaluated_during_and_after_the_run)
{
    outcome o = program_run(
        "run", "data=digits model=cnn optim.ema=0.98 trainer.max_epochs=2 trainer.devices=2 test_ckpt=last");

    CHECK(o.status == 0, "%s", o.out);
    test_run r = test_sh(
        "$COHORT test run --json > test.json 2> told && $COHORT ckpt export run --out w.safetensors && "
        "$COHORT test weights=w.safetensors data=digits model=cnn --json > plain.json 2>> told && "
        "$COHORT ckpt export run --out e.safetensors --ema && "
        "$COHORT test weights=e.safetensors data=digits model=cnn --json > ema.json 2>> told");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    json_t *run = json_load_file("run/summary.json", 0, NULL), *tested = json_load_file("test.json", 0, NULL);
    json_t *plain = json_load_file("plain.json", 0, NULL), *ema = json_load_file("ema.json", 0, NULL);
    double during = json_number_value(json_object_get(json_object_get(run, "metrics"), "test/loss"));
    double after = json_number_value(json_object_get(tested, "loss"));
    double without = json_number_value(json_object_get(plain, "loss"));
    double exported = json_number_value(json_object_get(ema, "loss"));
    CHECK(during > 0 && during == after && exported == after && without != after,
          "test loss %.17g in the run, %.17g after it, %.17g exported, %.17g of the weights", during, after,
          exported, without);
    json_decref(run);
    json_decref(tested);
    json_decref(plain);
    json_decref(ema);
}
