/* test_rows.c -- row-sparse training from the command line: where laziness makes no difference, tables with lists
 * of rows and dense tables end with the same weights; checkpoints of every step are those of a run without. */
#include "train/program.h"

#include <string.h>

#include "harness.h"

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
