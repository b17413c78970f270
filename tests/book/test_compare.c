/* test_compare.c -- runs side by side, and log books of a folder, from real runs. */
#include "book_test.h"

#include "net/net.h"

#define WORDS "model=mlp trainer.max_epochs=1 trainer.threads=1"

/* One rank, two ranks, two hosts, and two ranks with twice the batch. */
static void four_runs(void)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r =
        test_sh("exec 2>&1; set -e; mkdir guest\n"
                "$COHORT train " WORDS " trainer.devices=1 run.dir=logs/one > /dev/null\n"
                "$COHORT train " WORDS " trainer.devices=2 run.dir=logs/two > /dev/null\n"
                "$COHORT train " WORDS
                " trainer.devices=2 trainer.threads=2 data.batch_size=128 run.dir=logs/double > /dev/null\n"
                "export COHORT_TOKEN=$($COHORT token | head -1)\n"
                "line=\"--nnodes=2 --master-addr=127.0.0.1 --master-port=%d " WORDS " trainer.devices=1\"\n"
                "$COHORT train $line --node-rank=0 run.dir=logs/hosts > /dev/null & first=$!\n"
                "(cd guest; $COHORT train $line --node-rank=1 > /dev/null)\n"
                "wait $first",
                port);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

static double of(const json_t *v, const char *key)
{
    double x = NAN;

    CHECK(co_json_f64(v, key, &x), "the summary has no %s", key);
    return x;
}

/* The table that the guide's author typed, node by node: user, system, total and wall time, Acc@1, Acc@5. Each
 * host of the run has a row with its own numbers; the figures of the whole run stand in the first. */
static void row_is_true(const char *name)
{
    char *path = co_sprintf("logs/%s/summary.json", name), label[96];
    json_t *s = NULL, *one = NULL, *host;
    size_t i;

    CHECK_OK(co_json_read(&s, path, 1 << 20));
    CHECK_OK(co_json_read(&one, "logs/one/summary.json", 1 << 20));
    json_t *hosts = json_object_get(s, "hosts"), *metrics = json_object_get(s, "metrics");
    CHECK(json_array_size(hosts) == (strcmp(name, "hosts") == 0 ? 2 : 1), "%s: hosts", name);
    double up = of(one, "wall_s") / of(s, "wall_s"), ranks = strcmp(name, "one") == 0 ? 1 : 2;
    json_array_foreach(hosts, i, host)
    {
        double user = of(host, "cpu_user_s"), sys = of(host, "cpu_sys_s");
        char *times = co_sprintf(
            "| %s | %s | %.0f | %s | %s | %s | %s | %s |", i ? "" : name, facts_host(hosts, i, label),
            of(host, "ranks"), words_time(of(host, "wall_s")).text, words_time(user).text,
            words_time(sys).text, words_time(user + sys).text, words_percent(of(host, "utilisation")).text);
        char *rest = i ? co_sprintf("%s  |  |  |  |  |", times)
                       : co_sprintf("%s %s | %.2f | %.0f %% | %s | %s |", times,
                                    words_rate(of(s, "samples_per_s")).text, up, 100 * up / ranks,
                                    words_percent(of(metrics, "val/acc")).text,
                                    words_percent(of(metrics, "val/acc5")).text);
        const char *wanted[] = {rest};
        has_all("compare/book.md", wanted, 1);
        co_free(rest);
        co_free(times);
    }
    json_decref(s);
    json_decref(one);
    co_free(path);
}

TEST(a_comparison_has_the_table_and_a_sentence_for_each_difference)
{
    static const char *const md[] = {
        ("| run | host | ranks | wall time | user CPU | system CPU | total CPU | utilisation | samples/s | "
         "speed-up | efficiency | Acc@1 | Acc@5 |"),
        "| 1.00 | 100 % |",
        "## two against one\n\n- Same weights to the bit",
        "- 2 ranks instead of 1.",
        "- 2 hosts instead of 1.",
        "- Batch doubled (64 to 128), learning rate unchanged (0.001).",
        "- 12 steps instead of 23.",
        "times as fast with 2 times the ranks: efficiency ",
        "- 2 threads a rank instead of 1.",
        "times as fast with 4 times the threads of all ranks: efficiency ",
        "](plots/metric-time.svg)",
    };

    four_runs();
    test_run r = test_sh("$COHORT book compare logs/one logs/two logs/hosts logs/double && "
                         "$COHORT book compare logs/one logs/hosts --out other --json");
    CHECK(r.status == 0 && test_contains(r.out, "Same weights to the bit") &&
              test_contains(r.out, "book      compare/book.html"),
          "%s", r.out);
    CHECK(test_contains(r.out, "\"speed_up\":1.0") && test_contains(r.out, "\"cpu_user_s\":") &&
              test_contains(r.out, "\"differences\":[\"Same weights to the bit"),
          "%s", r.out);
    free(r.out);
    has_all("compare/book.md", md, CO_COUNT(md));
    static const char *const names[] = {"one", "two", "hosts"};
    for (size_t i = 0; i < CO_COUNT(names); i++)
        row_is_true(names[i]);
    stands_alone("compare/book.html");
    CHECK(co_fs_exists("other/plots/loss.svg"), "--out");
    r = test_sh(
        "$COHORT book && $COHORT book logs --json | wc -l && rm logs/two/book.* && $COHORT book logs/ && "
        "ls logs/two/book.html");
    CHECK(r.status == 0 && test_contains(r.out, "book      logs/book.html") && test_contains(r.out, "\n4\n"),
          "%s", r.out);
    free(r.out);
    static const char *const all[] = {"[two](two/book.md)", "| done | mlp | digits | 2 | 128 | 1 |",
                                      "4 runs, the newest"};
    has_all("logs/book.md", all, CO_COUNT(all));
    stands_alone("logs/book.html");
    r = test_sh("grep -c 'href=\"two/book.html\"' logs/book.html");
    CHECK(atoi(r.out) == 1, "the page links to pages: %s", r.out);
    free(r.out);
}

TEST(a_comparison_that_cannot_be_says_why)
{
    test_run r =
        test_sh("mkdir -p r empty/below; : > r/events.jsonl\n"
                "$COHORT book compare; $COHORT book compare r; $COHORT book compare r nowhere\n"
                "$COHORT book compare r empty; $COHORT book empty; $COHORT book a b; cd empty; $COHORT book");
    static const char *const wanted[] = {"0 runs; give 2 to 12 run folders",
                                         "1 run; give 2 to 12 run folders",
                                         "nowhere does not exist",
                                         "empty is no run folder",
                                         "empty has no runs below it",
                                         "book compare a b",
                                         "logs does not exist"};

    CHECK(r.status == 2, "status %d", r.status);
    test_has_all(r.out, wanted, CO_COUNT(wanted));
    free(r.out);
}

/* The second key is one that a run without a configuration does not have. */
TEST(differences_are_told_key_by_key_and_runs_of_one_name_apart)
{
    test_run r = test_sh(
        "mkdir -p x/r y/r z\n"
        "for d in x/r y/r; do printf '{\"step\":1,\"name\":\"val/mae\",\"value\":%%s,\"t\":1}\\n' "
        "$(echo $d | sed 's|x/r|0.5|; s|y/r|0.25|') > $d/events.jsonl; done\n"
        "printf 'seed: 1\\noptim:\\n  lr: 0.1\\n  momentum: 0.9\\n' > x/r/config.yaml\n"
        "printf 'seed: 2\\noptim:\\n  lr: 0.1\\n  momentum: 0.5\\nlogger:\\n  x: 1\\n' > y/r/config.yaml\n"
        "$COHORT book compare x/r y/r --out z");

    CHECK(r.status == 0 && test_contains(r.out, "y/r against x/r:") &&
              test_contains(r.out, "seed is 2 instead of 1.") &&
              test_contains(r.out, "optim.momentum is 0.5 instead of 0.9.") &&
              test_contains(r.out, "val/mae is lower: 0.2500 instead of 0.5000") &&
              test_contains(r.out, "The weights cannot be compared") && !test_contains(r.out, "logger.x"),
          "%s", r.out);
    free(r.out);
}
