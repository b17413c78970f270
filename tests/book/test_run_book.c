/* test_run_book.c -- the log book of one run: every figure that people wrote by hand, whatever the folder
 * holds. */
#include "book_test.h"

/* The list of figures that a log book of the guides has. Largest batch and S3 come later: said as such. */
TEST(a_runs_book_has_every_figure_of_the_hand_written_log_book)
{
    test_run r = test_sh("$COHORT train model=cnn trainer.devices=2 trainer.max_epochs=2 run.dir=r 2>&1");
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
        "| Checkpoints in S3 | not used |",
        "| val/acc (Acc@1) | ",
        "| val/acc5 (Acc@5) | ",
        "| test/acc (Acc@1) | ",
        "| host | ranks x threads | wall time | user CPU | system CPU | total CPU | utilisation | peak m",
        "(best, last) | 46 |",
        "[config_tree.log](config_tree.log)",
        "trainer.devices=2 trainer.max_epochs=2 run.dir=r",
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
    static const char *const wanted[] = {"## Why it failed", "not finite", "## Files"};

    CHECK(test_contains(r.out, "status 1") && test_contains(r.out, "r/book.html"), "%s", r.out);
    has_all("r/book.md", wanted, CO_COUNT(wanted));
    free(r.out);
}

TEST(names_from_outside_are_escaped_in_both_forms)
{
    static const char *const md[] = {"\\<b\\>x\\</b\\>\\|\\*y\\* \\[a\\](b)", "# Log book: \\_t\\_, r"};
    static const char *const html[] = {"val/&#60;b&#62;x&#60;/b&#62;|*y* [a](b)", "&#60;script&#62;"};

    mkdir("r", 0777);
    put("r/header.json", "{\"command\":\"x <script> ```` y\",\"settings\":{\"a_api_key\":{\"value\":\"hush\","
                         "\"default\":\"\"}}}");
    put("r/config.yaml", "task_name: _t_\n");
    put("r/events.jsonl",
        "{\"step\":1,\"name\":\"val/<b>x</b>|*y* [a](b)\",\"value\":1,\"t\":1}\n"
        "{\"step\":2,\"name\":\"val/<b>x</b>|*y* [a](b)\",\"value\":2,\"t\":2}\n"
        "{\"name\":\"recovery\",\"step\":1,\"rank\":0,\"how\":\"<i>&\",\"doing\":\"\\u0001\",\"t\":1}\n");
    CHECK_OK(co_book_write("r", NULL));
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
    put("r/header.json", "[]");
    put("r/summary.json", "{\"hosts\":7,\"metrics\":[],\"best\":3}");
    put("r/config.yaml", "\t:-{{{\n");
    put("r/train.log", "\xff\xfe[");
    put("r/events.jsonl", "garbage\n{\"name\":\n{\"name\":\"view\",\"hosts\":[1,{}],\"view\":\"x\"}\n{}\n");
    CHECK_OK(co_book_write("r", NULL));
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
