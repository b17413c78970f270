/* test_loggers.c -- logger= chooses trackers. */
#include "harness.h"

#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "track/tracker.h"

#define QUICK "model.hidden=8 trainer.max_steps=4 trainer.devices=1 log_every=1 test=false"

TEST(logger_chooses_which_trackers_write)
{
    static const struct {
        const char *words;
        bool csv;
    } lines[] = {{"", true},
                 {"logger=csv", true},
                 {"logger=none", false},
                 {"logger=null", false},
                 {"'logger=[csv,none]'", true},
                 {"'logger=[none]'", false},
                 {"~logger", false},
                 {"logger.csv.enabled=false", false},
                 {"logger=none logger.csv.enabled=true", true},
                 {"trainer.logger=False", false}};
    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        char table[64];
        test_run r = test_sh("$COHORT train " QUICK " run.dir=r%zu %s", i, lines[i].words);
        CHECK(r.status == 0, "%s: %s", lines[i].words, r.out);
        snprintf(table, sizeof table, "r%zu/csv/metrics.csv", i);
        CHECK(co_fs_exists(table) == lines[i].csv, "%s: csv %d", lines[i].words, !lines[i].csv);
    }
}

TEST(every_tracker_can_be_chosen_by_its_name)
{
    for (int i = 0; co_trackers[i]; i++) {
        const char *name = co_trackers[i]->name;
        test_run r =
            test_sh("$COHORT train " QUICK " run.dir=%s logger=%s && grep -A 2 ' %s:$' %s/config.yaml", name,
                    name, name, name);
        CHECK(r.status == 0 && test_contains(r.out, "enabled: true"),
              "is there a configs/logger/%s.yaml that sets %s.enabled? %d %s", name, name, r.status, r.out);
    }
}

TEST(a_logger_that_is_not_there_is_refused_and_one_that_is_planned_is_said)
{
    static const char *const planned[] = {"aim", "comet", "neptune", "'[csv,comet]'"};
    test_run r = test_sh("$COHORT train " QUICK " logger=papyrus");
    CHECK(r.status == 2 && test_contains(r.out, "no logger \"papyrus\"") && test_contains(r.out, "csv") &&
              test_contains(r.out, "none"),
          "%d %s", r.status, r.out);
    r = test_sh("$COHORT train " QUICK " logger=tensorbord");
    CHECK(r.status == 2 && test_contains(r.out, "did you mean tensorboard?"), "%d %s", r.status, r.out);
    for (size_t i = 0; i < CO_COUNT(planned); i++) {
        r = test_sh("$COHORT train " QUICK " run.dir=r%zu logger=%s", i, planned[i]);
        CHECK(r.status == 0 && test_contains(r.out, "this tracker is not built yet: use logger=csv"),
              "%s: %d %s", planned[i], r.status, r.out);
    }
}

TEST(a_tracker_that_cannot_write_is_a_warning_and_the_run_is_done)
{
    test_run r = test_sh("mkdir r && touch r/csv && $COHORT train " QUICK " run.dir=r");
    CHECK(r.status == 0 && test_contains(r.out, "logger=csv was dropped: ") && test_contains(r.out, "r/csv"),
          "%d %s", r.status, r.out);
    r = test_sh("grep -c 'was dropped' r/train.log; grep -c loss_step r/events.jsonl");
    CHECK(test_contains(r.out, "1\n4\n"), "%s", r.out);
}

TEST(logger_names_chooses_the_names_of_metrics_for_all_trackers)
{
    static const struct {
        const char *family, *head;
    } rows[] = {{"lightning", "train/loss_step,train/acc_step,lr,"},
                {"slash", "Loss/train,acc1/train,lr,"},
                {"underscore", "train_loss,train_acc1,lr,"}};
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        test_run r =
            test_sh("$COHORT train " QUICK " run.dir=r%zu logger.names=%s && head -1 r%zu/csv/metrics.csv", i,
                    rows[i].family, i);
        CHECK(r.status == 0 && test_contains(r.out, rows[i].head), "%s: %s", rows[i].family, r.out);
    }
    test_run r = test_sh("$COHORT train " QUICK " logger.names=camel");
    CHECK(r.status == 2 && test_contains(r.out, "lightning"), "%d %s", r.status, r.out);
}

/* Prints "fine N" if the column `best` is the best so far of the column `of` in each of the N rows that have
 * it. */
#define CHECK_BESTS                                                                                          \
    "bests() { awk -F, -v of=$2 -v up=$3 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } "           \
    "$at[of] != \"\" { v = $at[of]; if (n++ == 0 || (up ? v > b : v < b)) b = v; "                           \
    "if ($at[of \"_best\"] != b) print \"row\", $0, \"not\", b } END { print \"fine\", n }' "                \
    "$1/csv/metrics.csv; }; "

/* The run that ends at step 40 evaluates there, which the whole run does not do, and forgets that when it
 * goes on. */
TEST(the_best_value_so_far_is_a_scalar_after_each_validation_and_goes_on_after_a_resume)
{
#define BESTS                                                                                                \
    "model.hidden=4 optim.lr=0.05 trainer.devices=2 test=false callbacks.model_checkpoint.every_n_steps=5 "
    test_run r = test_sh("$COHORT train " BESTS " run.dir=whole trainer.max_steps=92 && "
                         "$COHORT train " BESTS " run.dir=cut trainer.max_steps=40 && "
                         "$COHORT train " BESTS " run.dir=cut trainer.max_steps=92 ckpt_path=auto && "
                         "grep _best whole/events.jsonl | sed 's/,\"t.*//' > a; "
                         "grep _best cut/events.jsonl | sed 's/,\"t.*//' | sort -u > b; "
                         "grep -v '\"step\":40,' b | sort > c; sort a | diff - c && echo the same");
    CHECK(r.status == 0 && test_contains(r.out, "the same\n"), "%s", r.out);
    r = test_sh(CHECK_BESTS "bests whole val/acc 1; head -1 whole/csv/metrics.csv; "
                            "grep 'val/acc_best' whole/book.md; ls whole/plots");
    CHECK(test_contains(r.out, "fine 4\n") && test_contains(r.out, "val/acc,val/acc5,val/acc_best\n") &&
              test_contains(r.out, "| val/acc_best | ") && test_contains(r.out, "metric-1") &&
              !test_contains(r.out, "metric-2"),
          "%s", r.out);
    r = test_sh("$COHORT train " BESTS " run.dir=loss trainer.max_steps=46 "
                "callbacks.model_checkpoint.monitor=val/loss logger.names=underscore && " CHECK_BESTS
                "bests loss val_loss 0; bests loss val_acc1 1");
    CHECK(r.status == 0 && test_contains(r.out, "fine 2\nfine 2\n"), "%s", r.out);
}

TEST(every_start_is_a_run_start_line_with_its_configuration_and_an_end_is_a_run_end_line)
{
    test_run r = test_sh(
        "SECRET=hush $COHORT train " QUICK " run.dir=r 'task_name=${oc.env:SECRET}' &&"
        " $COHORT train " QUICK " run.dir=r ckpt_path=auto trainer.max_steps=8 task_name=t &&"
        " grep -e run_start -e run_end r/events.jsonl | cut -c1-200 && ! grep -q hush r/events.jsonl");
    CHECK(r.status == 0, "%s", r.out);
    CHECK(test_contains(r.out, "{\"name\":\"run_start\",\"step\":0,\"run_id\":") &&
              test_contains(r.out, "{\"name\":\"run_start\",\"step\":4,\"run_id\":") &&
              test_contains(r.out, "{\"name\":\"run_end\",\"step\":4,\"status\":\"done\"") &&
              test_contains(r.out, "{\"name\":\"run_end\",\"step\":8,\"status\":\"done\""),
          "%s", r.out);
    r = test_sh("grep -o '\"config\":{[^}]*' r/events.jsonl");
    CHECK(test_contains(r.out, "\"data.batch_size\":64") && test_contains(r.out, "\"model.name\":\"mlp\"") &&
              test_contains(r.out, "${oc.env:SECRET"),
          "%s", r.out);
}

TEST(the_csv_of_the_style_lightning_has_its_place_its_columns_and_a_row_for_what_is_logged_together)
{
    test_run r =
        test_sh("$COHORT train model.hidden=8 trainer.max_steps=30 trainer.devices=1 log_every=10 test=false "
                "run.dir=r logger.csv.style=lightning && grep -v -e '^$' r/csv/version_0/metrics.csv > m && "
                "head -1 m && cut -d, -f1-6 m && ls r/csv");
    CHECK(r.status == 0, "%s", r.out);
    CHECK(test_contains(r.out, "\nepoch,grad_norm,lr,step,") &&
              test_contains(r.out, ",train/loss_epoch,train/loss_step,") &&
              test_contains(r.out, ",val/acc,val/acc5,val/acc_best,val/loss\n"),
          "%s", r.out);
    r = test_sh("awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } "
                "$at[\"train/loss_step\"] != \"\" { s = s \" \" $at[\"epoch\"] \":\" $at[\"step\"] } "
                "$at[\"val/loss\"] != \"\" { v = v \" \" $at[\"epoch\"] \":\" $at[\"step\"]; "
                "if ($at[\"train/loss_step\"] != \"\") print \"both\" } END { print s; print v }' m");
    CHECK(!strcmp(r.out, " 0:0 0:9 0:19 1:29\n 0:22 1:29\n"), "%s", r.out);
}
