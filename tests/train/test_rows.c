/* test_rows.c -- row-sparse training from the command line: where laziness makes no difference, tables with
 * lists of rows and dense tables end with the same weights; checkpoints of every step are those of a run
 * without. */
#include "train/program.h"

#include <string.h>

#include "harness.h"
#include "train/aside_int.h"
#include "train/stage.h"

#define RATINGS                                                                                              \
    "data=fake_ratings model=factors data.users=300 data.items=40 data.count=600 data.batch_size=50 "        \
    "trainer.max_epochs=2 console=quiet "

/* Plain SGD leaves a row without a gradient as it is, lazy or not. */
TEST(plain_sgd_gives_the_same_weights_with_lists_of_rows_as_with_whole_tables)
{
    outcome lists =
        program_run("lists", RATINGS "optim=sgd optim.lr=0.5 trainer.devices=2 trainer.clip_value=0.1");
    outcome tables =
        program_run("tables", RATINGS "optim=sgd optim.lr=0.5 trainer.devices=1 model.sparse=false "
                                      "trainer.clip_value=0.1");

    program_same(&lists, &tables, "lists against tables");
}

/* Adam's moments of a row without a gradient would decay: the lazy rule is another rule. */
TEST(lazy_adam_gives_other_weights_than_adam)
{
    outcome lists = program_run("lists", RATINGS "optim=adam trainer.devices=1");
    outcome tables = program_run("tables", RATINGS "optim=adam trainer.devices=1 model.sparse=false");

    CHECK(lists.status == 0 && tables.status == 0, "exit status %d, %d:\n%s", lists.status, tables.status,
          lists.out);
    CHECK(strcmp(lists.sha, tables.sha) != 0, "one hash: %s", lists.sha);
}

TEST(a_checkpoint_after_every_step_does_not_change_sparse_weights_and_a_resume_continues_from_it)
{
    outcome plain =
        program_run("plain", RATINGS "trainer.devices=1 callbacks.model_checkpoint.enabled=false");
    outcome saved =
        program_run("saved", RATINGS "trainer.devices=2 callbacks.model_checkpoint.every_n_steps=1");
    outcome first = program_run("half", RATINGS "trainer.devices=2 trainer.max_steps=11");
    outcome half = program_run("half", RATINGS "trainer.devices=3 ckpt_path=auto");

    program_same(&plain, &saved, "with checkpoints");
    CHECK(first.status == 0, "exit status %d:\n%s", first.status, first.out);
    program_same(&plain, &half, "continued");
}

/* A frozen table has no pieces, but its rows are in the lists. */
TEST(a_frozen_table_stays_as_it_is)
{
    outcome one = program_run("one", RATINGS "trainer.devices=1 optim.freeze=user* optim.ema=0.9");
    outcome two = program_run("two", RATINGS "trainer.devices=2 optim.freeze=user* optim.ema=0.9");

    program_same(&one, &two, "two ranks");
}

/* --- copies aside: two ranks with rows of one range ----------------------------------------------------- */
static const char *const small[] = {"model=factors",       "data=fake_ratings",  "optim=adamw",
                                    "data.users=300",      "data.items=9",       "data.count=48",
                                    "data.batch_size=16",  "data.eval_slice=16", "trainer.slices=4",
                                    "trainer.max_steps=3", "trainer.devices=2",  NULL};

static struct scene {
    stage g;
    co_plan *plan;
    struct rank rank; /* slot 1 */
    bool copied;      /* slot 0 has copied range 0 */
} scene;

/* A checkpoint of the state before unit 1 is being written, and row 3 of the first table is about to
 * change. */
static void set_scene(uint32_t inc)
{
    struct regions *regions;

    stage_open(&scene.g, small);
    scene.g.spec.ckpt_root = "nowhere";
    scene.plan = stage_plan(&scene.g);
    regions = scene.plan->regions;
    CHECK_OK(rank_open(&scene.rank, scene.plan, regions, 1, inc, -1));
    scene.rank.pc = atomic_load(&regions->ctl->pc);
    atomic_store(&regions->ctl->snap, (uint64_t)1 << 1 | 1);
    co_rows sum = rows_of_sum(scene.plan, regions, 0);
    *sum.count = 1;
    sum.row[0] = 3;
    scene.copied = false;
}

static void clear_scene(void)
{
    rank_close(&scene.rank);
    co_plan_free(scene.plan);
    stage_close(&scene.g);
}

static void finish_slot_0(struct rank *rank)
{
    co_claim_finish(&rank->regions->aside_claim[0], (co_who){.unit = 1, .slot = 0, .inc = 0});
    scene.copied = true;
}

TEST(a_rank_waits_until_another_has_copied_the_range_that_both_change)
{
    set_scene(0);
    co_claim *claim = &scene.plan->regions->aside_claim[0];
    CHECK(co_claim_take(claim, (co_who){.unit = 1, .slot = 0, .inc = 0}) == CO_CLAIM_FRESH, "slot 0 copies");
    scene.rank.pause = finish_slot_0;
    rows_set_aside(&scene.rank, 0);
    CHECK(scene.copied, "slot 1 went on before the range was copied");
    clear_scene();
}

TEST(a_range_whose_copy_was_interrupted_is_copied_by_the_successor)
{
    set_scene(1);
    struct regions *regions = scene.plan->regions;
    const row_plan *of = &scene.plan->rows.list[0];
    size_t lo = scene.plan->layout->entry[of->entry].offset, n = of->piece * of->width;

    CHECK(co_claim_take(&regions->aside_claim[0], (co_who){.unit = 1, .slot = 1, .inc = 0}) == CO_CLAIM_FRESH,
          "its predecessor copies");
    rows_set_aside(&scene.rank, 0);
    const float *copy = aside_find(scene.plan, regions, 1, scene.plan->chunks, 0);
    CHECK(copy, "the range is not marked");
    CHECK(memcmp(copy, regions->state + lo, n * sizeof(float)) == 0, "weights differ");
    CHECK(co_claim_is_done(&regions->aside_claim[0], 1), "others still wait");
    clear_scene();
}
