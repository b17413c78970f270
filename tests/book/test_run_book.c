/* test_run_book.c -- the log book of one run: every figure that people wrote by hand, whatever the folder
 * holds. */
#include "book_test.h"

static double of(const json_t *v, const char *key)
{
    double x = NAN;

    CHECK(co_json_f64(v, key, &x), "the summary has no %s", key);
    return x;
}

/* The folder r of a run with these files, where a NULL is no file; and its book. */
static void make_book(const char *header, const char *summary, const char *events)
{
    mkdir("r", 0777);
    if (header)
        put("r/header.json", header);
    if (summary)
        put("r/summary.json", summary);
    put("r/events.jsonl", events);
    CHECK_OK(co_book_write("r", NULL));
}

static void has_row(const char *figure, const char *value)
{
    char *line = co_sprintf("| %s | %s", figure, value);
    const char *wanted[] = {line};

    has_all("r/book.md", wanted, 1);
    co_free(line);
}

/* The rows hold the run's own numbers, not just something. */
static void figures_are_those_of_the_summary(void)
{
    json_t *s = NULL, *host;
    char text[400];

    CHECK_OK(co_json_read(&s, "r/summary.json", 1 << 20));
    json_t *best = json_object_get(s, "best"), *metrics = json_object_get(s, "metrics");
    snprintf(text, sizeof text, "%s at step %s |", words_percent(of(best, "val/acc")).text,
             words_int(of(best, "step")).text);
    has_row("Best val/acc (Acc@1)", text);
    has_row("val/acc (Acc@1)", words_percent(of(metrics, "val/acc")).text);
    has_row("val/acc5 (Acc@5)", words_percent(of(metrics, "val/acc5")).text);
    has_row("test/acc (Acc@1)", words_percent(of(metrics, "test/acc")).text);
    has_row("Training time", words_time(of(s, "wall_s")).text);
    has_row("Throughput", words_rate(of(s, "samples_per_s")).text);
    has_row("Peak memory", words_bytes(of(s, "peak_memory_bytes")).text);
    host = json_array_get(json_object_get(s, "hosts"), 0);
    has_row("CPU utilisation", words_percent(of(host, "utilisation")).text);
    snprintf(text, sizeof text, "2 x %.0f | %s | %s | %s |", of(host, "threads"),
             words_time(of(host, "wall_s")).text, words_time(of(host, "cpu_user_s")).text,
             words_time(of(host, "cpu_sys_s")).text);
    has_row(co_json_str(host, "name"), text);
    json_decref(s);
}

/* The list of figures that a log book of the guides has. Largest batch and S3 come later: said as such. */
TEST(a_runs_book_has_every_figure_of_the_hand_written_log_book)
{
    test_run r = test_sh("$COHORT train model=cnn trainer.devices=2 trainer.max_epochs=2 logger=tensorboard "
                         "run.dir=r 2>&1");
    static const char *const wanted[] = {
        "| Model | cnn, ",
        "| Data set | digits |",
        "| Strategy | ddp: 2 ranks on 1 host |",
        "| Batch size (global) | 64 = 32 x 2 ",
        "| Largest batch size | not measured |",
        "| Epochs | 2 |",
        "| Best val/acc (Acc@1) | ",
        "| Training time | ",
        "| Peak memory | ",
        "| CPU utilisation | ",
        "| GPU utilisation | no GPU was used |",
        "| GPU memory | no GPU was used |",
        "| Checkpoints in S3 | not used |",
        "| val/acc (Acc@1) | ",
        "| val/acc5 (Acc@5) | ",
        "| test/acc (Acc@1) | ",
        "| host | ranks x threads | wall time | user CPU | system CPU | total CPU | utilisation | peak m",
        "(best, last) | 46 |",
        "[config_tree.log](config_tree.log)",
        "[exec_time.log](exec_time.log)",
        "[tensorboard](tensorboard)",
        "trainer.devices=2 trainer.max_epochs=2 logger=tensorboard run.dir=r",
        "| `model.name` | cnn | mlp |",
        "data fingerprint",
        "1,437 train, 180 val, 180 test",
        "sha256",
        "plots/loss.svg",
        "plots/lr.svg",
        "plots/time-split.svg",
    };

    CHECK(test_contains(r.out, "book      r/book.html"), "%s", r.out);
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    figures_are_those_of_the_summary();
    stands_alone("r/book.html");
    CHECK(co_fs_exists("r/plots/loss.svg") && co_fs_exists("r/plots/metric-1.svg"), "plots");
    free(r.out);
    r = test_sh("grep -o '\"weights_sha256\": \"[0-9a-f]*' r/summary.json | cut -d'\"' -f4 > sha; "
                "grep -c -F -f sha r/book.md; $COHORT book r --json; rm r/book.md; $COHORT book r > printed; "
                "cmp printed r/book.md && echo same");
    CHECK(atoi(r.out) >= 2, "the hash is that of the run: %s", r.out);
    CHECK(test_contains(r.out, "\"state\":\"done\"") && test_contains(r.out, "\"val/acc5\":") &&
              test_contains(r.out, "same"),
          "%s", r.out);
    free(r.out);
}

TEST(no_book_is_written_if_nobody_wants_one)
{
    test_run r = test_sh("$COHORT train trainer.max_steps=3 run.dir=r run.book=false >/dev/null 2>&1; ls r");

    CHECK(!test_contains(r.out, "book") && !test_contains(r.out, "plots"), "%s", r.out);
    free(r.out);
}

TEST(a_run_that_fails_gets_a_book_that_says_why)
{
    test_run r =
        test_sh("$COHORT train optim=sgd optim.lr=1000000 trainer.max_steps=30 run.dir=r; echo status $?");
    static const char *const wanted[] = {"## Why it failed", "not finite", "## Files",
                                         "the run stopped: the gradient of this step was not finite"};

    CHECK(test_contains(r.out, "status 1") && test_contains(r.out, "r/book.html"), "%s", r.out);
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    free(r.out);
    char *text = slurp("r/book.md");
    CHECK(!strstr(text, "skipped"), "with on_nan=stop no step is skipped:\n%s", text);
    co_free(text);
}

/* Three starts: two that ended, with the hosts a and b, and between them one that was killed. */
TEST(of_a_run_with_several_starts_the_book_has_what_all_of_them_took)
{
    static const char *const wanted[] = {
        "| Training time | 1 min 35 s in 3 starts, within 16 min 40 s |",
        "| CPU utilisation | 75.00 % |", /* (30 + 15 + 5 + 10) / (40 + 20 + 20) */
        "| a | 1 x 1 | 1 min 00 s | 40.0 s | 5.00 s | 45.0 s | 75.00 % | 9.0 MB |",
        "| b | 1 x 1 | 20.0 s | 10.0 s | 5.00 s | 15.0 s | 75.00 % | 2.0 MB |",
        "Sums over the 2 starts that were not killed; ranks and threads are those of the last.",
        "## Starts",
        "| 0 | 10 | 40.0 s | 30.0 s | stopped |",
        "| 10 | not known | 35.0 s | not known | killed |",
        "| 10 | 30 | 20.0 s | 30.0 s | done |",
        "not part of any sum"};

    make_book(
        "{\"segments\":[{},{},{}]}",
        "{\"status\":\"done\",\"wall_s\":20,\"steps\":30,\"hosts\":["
        "{\"name\":\"a\",\"ranks\":1,\"threads\":1,\"wall_s\":20,\"cpu_user_s\":10,\"cpu_sys_s\":5,"
        "\"peak_memory_bytes\":9000000},"
        "{\"name\":\"b\",\"ranks\":1,\"threads\":1,\"wall_s\":20,\"cpu_user_s\":10,\"cpu_sys_s\":5,"
        "\"peak_memory_bytes\":2000000}]}",
        "{\"name\":\"run_start\",\"step\":0,\"t\":1000}\n"
        "{\"name\":\"run_end\",\"step\":10,\"status\":\"stopped\",\"wall_s\":40,\"hosts\":[{\"name\":\"a\","
        "\"ranks\":1,\"threads\":1,\"wall_s\":40,\"cpu_user_s\":30,\"cpu_sys_s\":0,"
        "\"peak_memory_bytes\":1000000}],\"t\":1040}\n"
        "{\"name\":\"run_start\",\"step\":10,\"t\":1100}\n"
        "{\"step\":12,\"name\":\"train/loss_step\",\"value\":1,\"t\":1135}\n"
        "{\"name\":\"run_start\",\"step\":10,\"t\":1980}\n"
        "{\"name\":\"run_end\",\"step\":30,\"status\":\"done\",\"wall_s\":20,\"hosts\":[{\"name\":\"a\","
        "\"cpu_user_s\":10,\"cpu_sys_s\":5},{\"name\":\"b\",\"cpu_user_s\":10,\"cpu_sys_s\":5}],\"t\":2000}"
        "\n");
    has_all("r/book.md", wanted, CO_COUNT(wanted));
}

static const char two_starts[] = "{\"segments\":[{},{}]}",
                  last_start[] = "{\"status\":\"done\",\"wall_s\":20}";

/* Two starts and a rank that was replaced in the first; after it 5,000 lines of this text. */
static void make_long_book(const char *line)
{
    co_str record = {0};

    co_str_add(&record,
               "{\"name\":\"run_start\",\"step\":0,\"t\":1000}\n"
               "{\"name\":\"recovery\",\"step\":3,\"rank\":1,\"how\":\"exited\",\"doing\":\"x\",\"t\":1010}\n"
               "{\"name\":\"run_end\",\"step\":10,\"status\":\"stopped\",\"wall_s\":40,\"t\":1040}\n");
    for (int i = 0; i < 5000; i++)
        co_str_add(&record, line);
    co_str_add(&record, "{\"name\":\"run_start\",\"step\":10,\"t\":1980}\n"
                        "{\"name\":\"run_end\",\"step\":30,\"status\":\"done\",\"wall_s\":20,\"t\":2000}\n");
    make_book(two_starts, last_start, co_str_text(&record));
    co_str_fini(&record);
}

static void record_with_many(const char *kind)
{
    static const char *const wanted[] = {"| Training time | 1 min 00 s in 2 starts, within 16 min 40 s |",
                                         "## Starts", "| 0 | 10 | 40.0 s |", "| 10 | 30 | 20.0 s |",
                                         "rank 1 was replaced: exited"};
    char *line = co_sprintf("{\"name\":\"conv1\",\"step\":5,\"%s\":{\"file\":\"media/a\"},\"t\":1020}\n", kind);

    make_long_book(line);
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    co_free(line);
}

TEST(thousands_of_pictures_histograms_or_tables_hide_no_start_and_no_lost_rank)
{
    record_with_many("image");
    record_with_many("histogram");
    record_with_many("table");
}

TEST(a_book_says_which_starts_and_events_it_could_not_read)
{
    static const char *const wanted[] = {
        "| Training time | 20.0 s in 1 of 2 starts",
        "header.json has 2 starts; the record that was read has lines of 1.", "those of the last start alone",
        "None among those that were read.",
        "The newest 4,000 events of events.jsonl were read; 1,005 older ones are not on this page."};

    make_long_book("{\"name\":\"checkpoint\",\"step\":5,\"path\":\"a\",\"t\":1020}\n");
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    char *text = slurp("r/book.md");
    CHECK(!strstr(text, "no rank was lost"), "nobody knows that:\n%s", text);
    co_free(text);
}

/* The record has no run_start: an old one, or one that somebody has shortened. */
TEST(a_book_does_not_take_the_last_start_for_the_whole_run)
{
    static const char *const wanted[] = {"| Training time | 20.0 s in 1 of 2 starts", "## Starts",
                                         "None in the record."};

    make_book(two_starts, last_start, "{\"step\":12,\"name\":\"train/loss_step\",\"value\":1,\"t\":1990}\n");
    has_all("r/book.md", wanted, CO_COUNT(wanted));
}

/* A real run that is stopped by its limit and continued: the record has what the book needs. */
TEST(the_book_of_a_continued_run_adds_up_its_starts)
{
    test_run r = test_sh(
        "$COHORT train trainer.max_steps=5 trainer.devices=1 run.dir=r >/dev/null 2>&1 && "
        "$COHORT train trainer.max_steps=9 trainer.devices=1 run.dir=r ckpt_path=auto >/dev/null 2>&1");
    static const char *const wanted[] = {" in 2 starts, within ", "## Starts", "| 0 | 5 | ", "| 5 | 9 | ",
                                         "Sums over the 2 starts; "};

    CHECK(r.status == 0, "%s", r.out);
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    free(r.out);
}

TEST(names_from_outside_are_escaped_in_both_forms)
{
    static const char *const md[] = {"\\<b\\>x\\</b\\>\\|\\*y\\* \\[a\\](b)", "# Log book: \\_t\\_, r"};
    static const char *const html[] = {"val/&#60;b&#62;x&#60;/b&#62;|*y* [a](b)", "&#60;script&#62;"};

    mkdir("r", 0777);
    put("r/config.yaml", "task_name: _t_\n");
    make_book(
        "{\"command\":\"x <script> ```` y\",\"settings\":{\"a_api_key\":{\"value\":\"hush\","
        "\"default\":\"\"}}}",
        NULL,
        "{\"step\":1,\"name\":\"val/<b>x</b>|*y* [a](b)\",\"value\":1,\"t\":1}\n"
        "{\"step\":2,\"name\":\"val/<b>x</b>|*y* [a](b)\",\"value\":2,\"t\":2}\n"
        "{\"name\":\"recovery\",\"step\":1,\"rank\":0,\"how\":\"<i>&\",\"doing\":\"\\u0001\",\"t\":1}\n");
    has_all("r/book.md", md, CO_COUNT(md));
    has_all("r/book.html", html, CO_COUNT(html));
    stands_alone("r/book.html");
    char *text = slurp("r/book.md");
    CHECK(strstr(text, "`````\nx <script> ```` y\n`````"), "the fence is longer than what it holds: %s", text);
    CHECK(!strstr(text, "hush") && strstr(text, "(hidden)"), "secrets are not shown: %s", text);
    co_free(text);
}

TEST(a_folder_with_garbage_gets_a_book_all_the_same)
{
    static const char *const wanted[] = {"killed", "2 lines of events.jsonl are no JSON objects",
                                         "Nothing was measured"};

    mkdir("r", 0777);
    put("r/config.yaml", "\t:-{{{\n");
    put("r/train.log", "\xff\xfe[");
    make_book("[]", "{\"hosts\":7,\"metrics\":[],\"best\":3}",
              "garbage\n{\"name\":\n{\"name\":\"view\",\"hosts\":[1,{}],\"view\":\"x\"}\n{}\n");
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    stands_alone("r/book.html");
}

/* Hosts without names, and figures of the machine: the plots look for the threads of a host that nobody knows. */
TEST(a_summary_whose_hosts_have_no_names_gets_a_book)
{
    static const char *const wanted[] = {"## Hosts", "plots/utilisation.svg"};

    make_book(NULL, "{\"status\":\"done\",\"hosts\":[{},{\"name\":7}]}",
              "{\"step\":1,\"name\":\"system/run_cpu_percent\",\"value\":50,\"t\":1}\n"
              "{\"step\":2,\"name\":\"system/run_cpu_percent\",\"value\":60,\"t\":2}\n"
              "{\"name\":\"run_end\",\"hosts\":7}\n{\"name\":\"run_start\",\"t\":\"x\"}\n"
              "{\"name\":\"run_end\",\"hosts\":[7,{}],\"status\":[]}\n{\"name\":\"run_start\"}\n");
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    stands_alone("r/book.html");
}

TEST(an_empty_run_has_a_book_and_an_empty_folder_has_none)
{
    test_run r = test_sh("mkdir r empty; : > r/events.jsonl; $COHORT book r | head -3; $COHORT book empty; "
                         "$COHORT book nowhere; $COHORT book r --out x; $COHORT book r --frob");

    CHECK(test_contains(r.out, "# Log book: r") && test_contains(r.out, "empty has no runs below it") &&
              test_contains(r.out, "nowhere does not exist") && test_contains(r.out, "--out is for") &&
              test_contains(r.out, "--frob"),
          "%s", r.out);
    free(r.out);
}

TEST(a_book_is_not_written_into_a_folder_that_another_run_has_taken)
{
    mkdir("r", 0777);
    put("r/header.json", "{\"run_id\":\"b\"}");
    CHECK_OK(co_book_write("r", "a"));
    CHECK(!co_fs_exists("r/book.md"), "nothing is written");
    CHECK_OK(co_book_write("r", "b"));
    CHECK(co_fs_exists("r/book.md"), "now it is");
}
