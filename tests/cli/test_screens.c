/* What a person sees before, during and after a run: the first screen, plan, epoch lines, notices, the
 * end. */
#include "cli/runs.h"

#include <math.h>
#include <unistd.h>

static char *said(int status, const char *line)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == status, "%s: exit status %d\n%s", line, r.status, r.out);
    return r.out;
}

static void says(const char *text, const char *words)
{
    CHECK(test_contains(text, words), "no \"%s\" in\n%s", words, text);
}

/* --- before --------------------------------------------------------------------------------------------- */
TEST(the_first_screen_has_every_fact_that_was_decided)
{
    char *out = said(0, "$COHORT train data=digits model=cnn trainer.devices=2 trainer.threads=1 "
                        "trainer.max_steps=2 optim.lr=0.003 "
                        "schedule=cosine schedule.warmup_steps=1 run.dir=r 2>&1 >/dev/null");
    says(out, "model     cnn: 56554 parameters\n");
    says(out, "data      digits: 1437 train, 180 val, 180 test; sample [1,8,8], 10 classes; fingerprint ");
    says(out, "batch     global batch 64 = slice 16 x 4 slices\n");
    says(out, "steps     23 per epoch, 2 in all\n");
    says(out, "ranks     2 on this host; 4 slices keep at most 4 busy\n");
    says(out, " MiB = ");
    says(out, " private\n");
    says(out, "optimiser adamw, learning rate 0.003");
    says(out, "schedule  cosine after 1 steps of warm-up");
    says(out, "kernels   ");
    says(out, "run       r\n");
    free(out);
    out = said(0, "$COHORT train " SMALL
                  " data.batch_size=2048 trainer.max_steps=1 optim.freeze=fc1.* run.dir=f 2>&1");
    says(out, "larger than the data: each epoch is one step of 1437 samples");
    says(out, " trainable, ");
    free(out);
    out = said(0, "$COHORT train " SMALL
                  " trainer.slices=1 trainer.devices=3 trainer.threads=1 trainer.max_steps=1 run.dir=g 2>&1");
    says(out, "1 rank: the batch has only 1 slice, so 2 of the 3 ranks asked for are not started");
    free(out);
}

static json_t *plan_of(const char *words)
{
    json_t *v = NULL;
    test_run r = test_sh("$COHORT plan %s --json 2>err", words);

    CHECK(r.status == 0, "plan %s: exit status %d\n%s", words, r.status, r.out);
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), words));
    free(r.out);
    return v;
}

static void plan_is_what_the_run_takes(const char *words)
{
    json_t *plan = plan_of(words), *memory = json_object_get(plan, "memory"), *bytes;
    const char *name;
    long long sum = 0;
    char line[512];

    json_object_foreach(json_object_get(memory, "shared"), name, bytes) sum += json_integer_value(bytes);
    CHECK(sum == number_in(memory, "shared_bytes"), "the classes have %lld bytes, the whole %lld", sum,
          number_in(memory, "shared_bytes"));
    CHECK(!json_object_get(json_object_get(memory, "shared"), "other"), "a region has no name in the plan");
    snprintf(line, sizeof line, "rm -rf r; $COHORT train %s run.dir=r", words);
    succeeds(line);
    json_t *s = json_of("%s/summary.json", "r");
    double planned = (double)number_in(memory, "bytes"),
           said_then = (double)number_in(s, "planned_memory_bytes"),
           peak = (double)number_in(s, "peak_memory_bytes");
    CHECK(number_in(s, "global_batch") == number_in(plan, "global_batch") &&
              number_in(s, "slices") == number_in(plan, "slices") &&
              number_in(s, "ranks") == number_in(plan, "ranks") &&
              number_in(s, "steps") == number_in(plan, "steps"),
          "the run is another than the plan");
    CHECK(fabs(planned - said_then) < 0.03 * said_then, "plan says %g, train %g", planned, said_then);
    test_note("planned %.2f MiB, measured %.2f MiB: %s", planned / 1048576, peak / 1048576, words);
#ifndef __SANITIZE_ADDRESS__
    CHECK(planned > 0.95 * peak && planned < 1.05 * peak, "%s: planned %g, peak %g", words, planned, peak);
#endif
    double step_ms = 0;
    CHECK(co_json_f64(json_object_get(plan, "time"), "step_ms", &step_ms) && step_ms > 0, "no time");
    json_decref(s);
    json_decref(plan);
}

/* The parts of a plan for several hosts; no region is without a name. Times are measured, so only their
 * arithmetic is checked. */
TEST(plan_for_two_hosts_says_deal_wire_and_efficiency)
{
    static const char *const lines[] = {
        "--nnodes=2 --rdzv-endpoint=127.0.0.1:29400 data=digits model=cnn "
        "trainer.slices=16 trainer.devices=1",
        "--nnodes=2 --rdzv-endpoint=127.0.0.1:29400 data=fake_ratings "
        "model=factors optim=sparse_adam trainer.slices=16 trainer.devices=1"};
    double bytes, work, alone, step, efficiency;

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        json_t *plan = plan_of(lines[i]), *wire = json_object_get(plan, "wire");
        json_t *shared = json_object_get(json_object_get(plan, "memory"), "shared");
        CHECK(i == 0 || number_in(shared, "rows") > 0, "no rows");
        CHECK(!json_object_get(shared, "other"), "%s: a region has no name", lines[i]);
        CHECK(number_in(shared, "wire") > 0, "%s: nothing for the wire", lines[i]);
        CHECK(number_in(plan, "hosts") == 2 && number_in(wire, "slices_per_host") == 8, "%s: the deal",
              lines[i]);
        CHECK(co_json_f64(wire, "bytes_per_step", &bytes) && co_json_f64(wire, "work_ms", &work) &&
                  co_json_f64(wire, "alone_ms", &alone),
              "%s: figures", lines[i]);
        CHECK(work < alone && work > 0.4 * alone, "%s: work %g, alone %g", lines[i], work, alone);
        for (size_t k = 0; k < 2; k++) {
            const json_t *at = json_array_get(json_object_get(wire, "assumed"), k);
            double wanted = work + bytes * 8e-6 / (double)number_in(at, "gbits");
            CHECK(co_json_f64(at, "step_ms", &step) && co_json_f64(at, "efficiency", &efficiency), "%s",
                  lines[i]);
            CHECK(fabs(step - wanted) < 1e-9 * wanted, "%s: %g ms, not %g", lines[i], step, wanted);
            CHECK(fabs(efficiency - alone / (2 * step)) < 1e-9, "%s: efficiency %g", lines[i], efficiency);
        }
        json_decref(plan);
    }
    test_run r = test_sh("$COHORT plan %s", lines[0]);
    says(r.out, "deal      16 slices over 2 hosts: 8 each");
    says(r.out, "wire      ");
    says(r.out, "  wire  ");
    says(r.out, "of 2 such hosts at 1 Gbit/s");
    free(r.out);
    r = test_sh("$COHORT plan data=digits model=cnn");
    CHECK(!test_contains(r.out, "\ndeal ") && !test_contains(r.out, "Gbit"), "one host: %s", r.out);
    free(r.out);
}

TEST(plan_foretells_memory_to_the_byte_and_starts_nothing)
{
    char *out = said(0, "$COHORT plan " SMALL " trainer.devices=2; ls");
    says(out, "batch     global batch 64 = slice 4 x 16 slices");
    says(out, "memory in bytes\n  weights ");
    says(out, "\n  shared ");
    says(out, "samples/s");
    CHECK(!test_contains(out, "logs"), "a run folder was made:\n%s", out);
    free(out);
    plan_is_what_the_run_takes("data=digits model=cnn trainer.devices=2 trainer.max_steps=8");
    plan_is_what_the_run_takes("data=digits model=mlp model.hidden=1000 optim=adam trainer.devices=2 "
                               "trainer.max_steps=20");
    out = said(2, "$COHORT plan trainer.slices=3");
    says(out, "power of two");
    free(out);
}

TEST(alone_it_says_what_it_is_and_what_it_found)
{
    char *out = said(0, "$COHORT train " SMALL " trainer.max_epochs=1000000 task_name=mine 2>log & pid=$!;"
                        " until grep -q '^epoch' log; do sleep 0.05; done; kill -TERM $pid; wait $pid;"
                        " mkdir -p data/cifar-10-batches-bin; $COHORT");
    says(out, "trains neural networks");
    says(out, "cohort train experiment=demo");
    says(out, "Here: ");
    says(out, " of memory that this process may use");
    says(out, "cohort train data=cifar10 data.dir=data");
    says(out, "Unfinished: logs/mine/runs/");
    says(out, "train ckpt_path=auto continues it)");
    free(out);
}

TEST(alone_it_offers_to_continue_a_run_only_if_there_is_one)
{
    char *out = said(0, "$COHORT");
    CHECK(!test_contains(out, "ckpt_path=auto") && !test_contains(out, "nfinished"), "%s", out);
    free(out);
}

/* --- during --------------------------------------------------------------------------------------------- */
TEST(an_epoch_s_line_has_both_accuracies_in_the_form_of_the_example)
{
    char *out = said(0, "$COHORT train " SMALL " trainer.max_epochs=2 run.dir=r 2>&1");
    says(out, "\n * Acc@1 ");
    says(out, " acc5 ");
    double acc1 = -1, acc5 = -1, acc = -2;
    const char *line = strstr(out, "\n * Acc@1 ");
    while (strstr(line + 1, "\n * Acc@1 ")) /* the last */
        line = strstr(line + 1, "\n * Acc@1 ");
    CHECK(sscanf(line, "\n * Acc@1 %lf Acc@5 %lf\n", &acc1, &acc5) == 2, "%s", line);
    json_t *s = json_of("%s/summary.json", "r");
    CHECK(co_json_f64(json_object_get(s, "metrics"), "val/acc", &acc), "no val/acc");
    const json_t *classes = json_object_get(s, "test_classes"), *row;
    long long samples = 0, right = 0;
    size_t i;
    json_array_foreach(classes, i, row)
    {
        samples += number_in(row, "samples");
        right += number_in(row, "right");
    }
    double test_acc = -1;
    CHECK(co_json_f64(json_object_get(s, "metrics"), "test/acc", &test_acc), "no test/acc");
    CHECK(json_array_size(classes) == 10 && samples == 180 && fabs((double)right / 180 - test_acc) < 1e-9,
          "%zu classes, %lld right of %lld", json_array_size(classes), right, samples);
    CHECK(fabs(100 * acc - acc1) < 0.001 && acc5 >= acc1 && acc5 <= 100, "%g, %g, %g", acc, acc1, acc5);
    json_decref(s);
    free(out);
}

TEST(an_epoch_s_line_fits_the_terminal_and_train_log_has_all_of_it)
{
    for (int columns = 40; columns <= 100; columns += 20) {
        test_run r = test_sh("rm -rf r; script -qec 'stty cols %d rows 24; exec $COHORT train " SMALL
                             " trainer.max_epochs=2 run.dir=r' /dev/null | tr '\\r' '\\n' |"
                             " sed 's/\\x1b\\[[0-9]*[Km]//g' | grep -a '^epoch [^[]* val loss'",
                             columns);
        for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n"))
            CHECK((int)strlen(line) < columns, "%d columns are %zu: %s", columns, strlen(line), line);
        free(r.out);
        char *out =
            said(0, "grep -c 'epoch ./2  step .* train loss .* acc .* val .* acc .* acc5 ' r/train.log");
        says(out, "2");
        free(out);
    }
}

TEST(console_imagenet_prints_the_lines_that_scripts_know)
{
    char *out =
        said(0, "$COHORT train " SMALL " console=imagenet trainer.max_epochs=2 log_every=11 run.dir=r 2>&1 | "
                "grep -E '^(Epoch|Test| [*])'");
    int n = 0;
    const char *at = out;
    static const char *const begins[] = {"Epoch: [0][ 1/23]\tTime ",
                                         "Epoch: [0][12/23]\tTime ",
                                         "Epoch: [0][23/23]\tTime ",
                                         "Test: [6/6]\tTime ",
                                         " * Acc@1 ",
                                         "Epoch: [1][ 1/23]\tTime "};
    for (; *at; at = strchr(at, '\n') + 1, n++)
        if (n < (int)CO_COUNT(begins))
            CHECK(strncmp(at, begins[n], strlen(begins[n])) == 0, "line %d: %s", n, at);
    CHECK(n == 10, "%d lines", n);
    says(out, "\tData  0.");
    says(out, "\tLoss ");
    says(out, "\tAcc@5 ");
    free(out);
}

TEST(a_loss_that_jumps_is_noticed_and_an_ordinary_run_has_no_notice)
{
    char *out =
        said(0, "$COHORT train experiment=demo model.width=4 trainer.max_epochs=4 run.dir=a 2>&1; "
                "$COHORT train data=text data.path=$REPO/tests/data/verse.txt model=lm trainer.max_epochs=2 "
                "run.dir=b 2>&1; $COHORT train data=fake model=linear trainer.max_epochs=3 run.dir=c 2>&1");
    CHECK(!test_contains(out, "deviations above"), "%s", out);
    free(out);
    /* the rate grows tenfold after the second epoch */
#define JUMP                                                                                                 \
    SMALL " optim=sgd optim.lr=0.5 schedule=multistep schedule.milestones=[2] schedule.gamma=10 "            \
          "trainer.max_epochs=3"
    out = said(0, "$COHORT train " JUMP " run.dir=d 2>&1; grep loss_spike d/events.jsonl");
    says(out, "(epoch 3) is ");
    says(out, "deviations above its recent mean");
    says(out, "\"name\":\"loss_spike\"");
    free(out);
    out = said(0, "$COHORT train " JUMP " trainer.spike=0 run.dir=e 2>&1");
    CHECK(!test_contains(out, "deviations above"), "%s", out);
    free(out);
}

TEST(an_early_end_is_told_after_the_figures_it_is_about_and_more_patience_is_offered)
{
    /* nothing is learnt, so the second validation is no better than the first */
    char *out =
        said(0, "$COHORT train data=digits model=mlp optim.lr=0 trainer.max_epochs=9 trainer.devices=1 "
                "callbacks.early_stopping.patience=1 run.dir=r 2>&1");
    const char *figures = strstr(out, "epoch 2/9  step 46  train"), *end = strstr(out, "early stop: ");
    CHECK(figures && end && figures < end, "%s", out);
    says(out, "has not improved for 1 evaluation (");
    says(out, "train run.dir=r ckpt_path=auto callbacks.early_stopping.patience=2\n");
    free(out);
    out = said(0, "$COHORT ckpt ls r");
    says(out, "good  <- best\n");
    says(out, "good  <- last\n");
    free(out);
}

TEST(what_a_run_takes_of_the_machine_is_recorded_all_along)
{
    succeeds("$COHORT train " SMALL " trainer.max_epochs=1000000 trainer.max_time=3s trainer.eval_every=0 "
             "callbacks.model_checkpoint.enabled=false trainer.devices=2 trainer.system_every=0.5 run.dir=r");
    static const char *const names[] = {"cpu_percent", "run_cpu_percent", "memory_mb", "host_memory_percent",
                                        "load",        "disk_free_mb"};
    json_t *s = json_of("%s/summary.json", "r"), *sys = json_object_get(s, "system");
    for (size_t i = 0; i < CO_COUNT(names); i++) {
        double mean = -1, most = -1;
        json_t *f = json_object_get(sys, names[i]);
        CHECK(co_json_f64(f, "mean", &mean) && co_json_f64(f, "max", &most) && mean >= 0 && most >= mean,
              "%s: %g, %g", names[i], mean, most);
        test_run r = test_sh("grep -c '\"system/%s\"' r/events.jsonl", names[i]);
        CHECK(atoi(r.out) >= 2 && atoi(r.out) <= 10, "%s: %s", names[i], r.out);
        free(r.out);
    }
    test_run ranks = test_sh("grep -c 'system/rank.0.[a-z]*_percent' r/events.jsonl; "
                             "grep -c system/rank.1.memory_mb r/events.jsonl");
    int shares = 0, memories = 0;
    CHECK(sscanf(ranks.out, "%d %d", &shares, &memories) == 2 && memories >= 1 && shares > memories, "%s",
          ranks.out);
    free(ranks.out);
    double cpu = 0, memory = 0;
    CHECK(co_json_f64(json_object_get(sys, "run_cpu_percent"), "mean", &cpu) && cpu > 5, "%g %% of a CPU", cpu);
    CHECK(co_json_f64(json_object_get(sys, "memory_mb"), "max", &memory), "memory");
#ifndef __SANITIZE_ADDRESS__
    double peak = (double)number_in(s, "peak_memory_bytes") / 1e6;
    CHECK(memory > 0.8 * peak && memory < 1.25 * peak, "%g MB seen, %g by the run's own count", memory, peak);
#endif
    json_decref(s);
}

/* --- after ---------------------------------------------------------------------------------------------- */
TEST(the_end_says_what_came_of_it_what_to_type_next_and_how_to_do_it_again)
{
    char sha[65], again[65];
    char *out = said(0, "$COHORT train " SMALL " trainer.max_steps=12 'run.dir=a b' 2>&1 >/dev/null");
    static const char *const next[] = {"\nresults   test loss ",
                                       "\nrun       a b\n",
                                       "\nnext      ",
                                       "cohort test 'ckpt_path=a b'\n",
                                       "cohort predict 'ckpt_path=a b' --limit 10\n",
                                       "cohort ckpt ls 'a b'\n",
                                       "cohort train 'run.dir=a b' ckpt_path=auto trainer.max_steps=24\n"};
    for (size_t i = 0; i < CO_COUNT(next); i++)
        says(out, next[i]);
    const char *line = strstr(out, "\nreproduce: ");
    CHECK(line, "%s", out);
    line += strlen("\nreproduce: ");
    CHECK(strstr(line, " seed=0  # kernels "), "%s", line);
    json_t *s = json_of("%s/summary.json", "a b");
    CHECK(strncmp(text_in(s, "reproduce"), line, strcspn(line, "\n")) == 0, "%s", text_in(s, "reproduce"));
    json_decref(s);
    sha_of_run(sha, "a b");
    test_run r = test_sh("%.*s\n", (int)strcspn(line, "\n"), line);
    CHECK(r.status == 0, "%s", r.out);
    r.out[strlen(r.out) - 1] = '\0';
    const char *dir = strrchr(r.out, '\n') ? strrchr(r.out, '\n') + 1 : r.out;
    sha_of_run(again, dir);
    CHECK(strcmp(sha, again) == 0, "done again it came out otherwise");
    free(r.out);
    free(out);
    succeeds("$COHORT test 'ckpt_path=a b' && $COHORT predict 'ckpt_path=a b' --limit 10 && $COHORT ckpt ls "
             "'a b' && "
             "$COHORT train 'run.dir=a b' ckpt_path=auto trainer.max_steps=24");
}

/* Runs the reproduce line that a run printed; its weights are those of the run in `dir`. */
static void does_it_again(const char *out, const char *dir)
{
    char sha[65], again[65];
    const char *line = strstr(out, "\nreproduce: ");

    CHECK(line, "%s", out);
    line += strlen("\nreproduce: ");
    test_run r = test_sh("%.*s\n", (int)strcspn(line, "\n"), line);
    CHECK(r.status == 0, "%.*s: %s", (int)strcspn(line, "\n"), line, r.out);
    r.out[strlen(r.out) - 1] = '\0';
    sha_of_run(sha, dir);
    sha_of_run(again, strrchr(r.out, '\n') ? strrchr(r.out, '\n') + 1 : r.out);
    CHECK(strcmp(sha, again) == 0, "done again it came out otherwise");
    free(r.out);
}

TEST(the_reproduce_line_works_as_typed_whatever_named_the_folder_or_continued_the_run)
{
    char *out = said(0, "$COHORT train " SMALL " trainer.max_steps=5 trainer.default_root_dir=x "
                        "callbacks.model_checkpoint.dirpath=kept 2>&1 >/dev/null");
    does_it_again(out, "x");
    free(out);
    out = said(0, "$COHORT train " SMALL " trainer.max_steps=5 'run={dir:y}' 2>&1 >/dev/null");
    does_it_again(out, "y");
    free(out);
    out = said(0, "$COHORT train run.dir=y ckpt_path=auto trainer.max_steps=8 2>&1 >/dev/null");
    says(out, "\n3 steps in ");
    says(out, " s (8 in all)");
    does_it_again(out, "y");
    free(out);
    out = said(0, "$COHORT train experiment=y/config.yaml run.dir=z ckpt_path=null 2>&1 >/dev/null");
    does_it_again(out, "z");
    free(out);
}

TEST(the_reproduce_line_names_the_batch_of_all_ranks)
{
    static const char *const lines[] = {"data.batch_size_per_rank=8", "-b 8", "-a mlp -b 8",
                                        "multigpu_torchrun.py 1 1 --batch_size 8"};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        char command[256], dir[16];
        snprintf(dir, sizeof dir, "r%zu", i);
        snprintf(command, sizeof command,
                 "$COHORT train %s data=digits model=mlp trainer.devices=3 trainer.max_steps=2 run.dir=%s "
                 "2>&1 >/dev/null",
                 lines[i], dir);
        char *out = said(0, command), *line = strstr(out, "\nreproduce: ");
        CHECK(line && strstr(line, " data.batch_size=24 ") && !strstr(line, "per_rank"), "%s: %s", lines[i],
              out);
        char *devices = strstr(line, "trainer.devices=3");
        CHECK(devices, "%s", line);
        devices[strlen("trainer.devices=")] = '1'; /* as on a machine with one CPU */
        does_it_again(out, dir);
        free(out);
    }
}

TEST(a_training_of_milliseconds_has_no_rate_and_one_slice_is_singular)
{
    char *out =
        said(0, "$COHORT train data=fake model=linear data.batch_size=4 trainer.slices=1 trainer.devices=1 "
                "trainer.max_steps=3 run.dir=r 2>&1 >/dev/null");

    says(out, "= slice 4 x 1 slice\n");
    says(out, "\n3 steps in ");
    says(out, " s, 0 recoveries\n");
    CHECK(!strstr(out, " samples/s, 0 rec"), "%s", out);
    free(out);
}

TEST(quiet_says_nothing_but_what_went_wrong_and_train_log_has_it_all)
{
    test_run r =
        test_sh("$COHORT train " SMALL " trainer.max_steps=2 console=quiet run.dir=q 2>err; cat err");
    CHECK(r.status == 0 && strcmp(r.out, "q\n") == 0, "%s", r.out);
    free(r.out);
    char *log = said(0, "cat q/train.log");
    says(log, "] test loss ");
    says(log, "] reproduce: ");
    free(log);
    r = test_sh("$COHORT train " SMALL
                " optim=sgd optim.lr=1e6 trainer.max_steps=50 console=quiet run.dir=n");
    CHECK(r.status == 1 && test_contains(r.out, "failed: "), "exit status %d: %s", r.status, r.out);
    free(r.out);
}
