/* The command line of `cohort launch`: every flag in each spelling, flags that go to the program, flags that
 * are refused. */
#include "cli/runs.h"

#include <unistd.h>

#include "job/launch/launch_int.h"
#include "net/net.h"

static char noted[512];

static void note(const char *text)
{
    snprintf(noted, sizeof noted, "%s", text);
}

/* Words separated by blanks. */
static co_err parse(launch_args *a, const char *words)
{
    static char text[512];
    char *argv[64];
    int n = 0;

    snprintf(text, sizeof text, "launch %s", words);
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
        argv[n++] = at;
    noted[0] = '\0';
    return launch_parse(a, n, argv, note);
}

static bool same(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

#define VALUE_NAME(field, name, what, help) {name, offsetof(launch_args, field), true},
#define SWITCH_NAME(field, name, help)      {name, offsetof(launch_args, field), false},
static const struct {
    const char *name;
    size_t at;
    bool value;
} table[] = {LAUNCH_FLAGS(VALUE_NAME, SWITCH_NAME)};

static void has_value(const char *words, size_t i)
{
    launch_args a;

    CHECK_OK(parse(&a, words));
    const void *field = (char *)&a + table[i].at;
    if (table[i].value)
        CHECK(same(*(const char *const *)field, "v1"), "%s", words);
    else
        CHECK(*(const bool *)field, "%s", words);
    CHECK(a.n == 3 && same(a.program[0], "p.py") && same(a.program[1], "--nnodes=9") && same(a.program[2], "x"),
          "%s: %d words of the program", words, a.n);
    CHECK(!noted[0], "%s: %s", words, noted);
    launch_args_free(&a);
}

TEST(every_flag_is_known_by_dashes_underscores_equal_sign_next_word_and_pet)
{
    for (size_t i = 0; i < CO_COUNT(table); i++) {
        char under[64], pet[80], words[256];
        snprintf(under, sizeof under, "%s", table[i].name);
        for (char *p = under + 2; *p; p++)
            *p = *p == '-' ? '_' : *p;
        snprintf(pet, sizeof pet, "PET_%s", under + 2);
        for (char *p = pet; *p; p++)
            *p = *p >= 'a' && *p <= 'z' ? *p - 32 : *p;
        const char *spelled[] = {table[i].name, under};
        for (int k = 0; k < 2; k++) {
            snprintf(words, sizeof words, "%s%s p.py --nnodes=9 x", spelled[k], table[i].value ? "=v1" : "");
            has_value(words, i);
            snprintf(words, sizeof words, "%s%s p.py --nnodes=9 x", spelled[k], table[i].value ? " v1" : "");
            has_value(words, i);
        }
        setenv(pet, table[i].value ? "v1" : "1", 1);
        has_value("p.py --nnodes=9 x", i);
        unsetenv(pet);
    }
}

TEST(short_flags_and_beginnings_are_argparses)
{
    launch_args a;

    CHECK_OK(parse(&a, "-r 3 -t1 -m pkg.train --nproc 4"));
    CHECK(same(a.redirects, "3") && same(a.tee, "1") && a.module && !a.nproc, "short flags");
    CHECK(a.n == 3 && same(a.program[0], "pkg.train") && same(a.program[1], "--nproc"),
          "the program's own words");
    launch_args_free(&a);
    CHECK_OK(parse(&a, "--nproc=4 -- p.py"));
    CHECK(same(a.nproc, "4") && same(a.program[0], "p.py"), "a beginning");
    launch_args_free(&a);
}

TEST(a_flag_of_the_program_before_it_is_moved_with_a_note)
{
    launch_args a;

    succeeds("touch main.py");
    CHECK_OK(parse(&a, "--nproc_per_node=2 --wandb_run_group go-sdk main.py -a resnet18"));
    CHECK(a.n == 5 && same(a.program[0], "main.py") && same(a.program[1], "--wandb_run_group") &&
              same(a.program[2], "go-sdk") && same(a.program[3], "-a"),
          "%d words, first %s", a.n, a.program[0]);
    CHECK(test_contains(noted, "--wandb_run_group go-sdk"), "%s", noted);
    launch_args_free(&a);
    CHECK_OK(parse(&a, "--amp main.py"));
    CHECK(a.n == 2 && same(a.program[0], "main.py") && same(a.program[1], "--amp"), "a switch");
    launch_args_free(&a);
}

TEST(near_misses_and_bad_values_are_refused_before_anything_starts)
{
    static const char *const wrong[][2] = {
        {"--nproc_per_nodes=4 p.sh", "did you mean --nproc-per-node?"},
        {"--rdvz-endpoint=a:1 p.sh", "did you mean --rdzv-endpoint?"},
        {"--nproc-per-node=0 p.sh", "--nproc-per-node=0: a number from 1"},
        {"--nproc-per-node=many p.sh", "auto, cpu or gpu"},
        {"--nnodes=2:1 p.sh", "MIN <= MAX"},
        {"--nnodes=x p.sh", "--nnodes=x"},
        {"--nnodes=2 p.sh", "needs a place where the hosts meet"},
        {"--standalone --nnodes=2 p.sh", "--standalone is one host"},
        {"--nnodes=2 --node-rank=2 --master-addr=a p.sh", "--node-rank=2"},
        {"--redirects=4 p.sh", "--redirects=4"},
        {"--tee=5:1 p.sh", "no local rank 5"},
        {"--local-ranks-filter=a p.sh", "numbers with commas"},
        {"--nproc-per-node 2 --local_rank=0 p.py", "--local-rank is the script's"},
        {"--local-rank p.py", "--local-rank is the script's"},
        {"--local-rank 0 p.py", "with --legacy-local-rank"},
        {"--max-restarts=-1 p.sh", "--max-restarts=-1"},
        {"--signals-to-handle=SIGKILL p.sh", "SIGKILL is not a signal that can be handled"},
        {"--signals-to-handle=SIGFOO p.sh", "SIGFOO"},
        {"--start-method=thread p.sh", "spawn|fork|forkserver"},
        {"--grace=soon p.sh", "number of seconds"},
        {"--log-prefix=host p.sh", "auto|none|rank"},
        {"--rdzv-backend=zeus --nnodes=2 p.sh", "--rdzv-backend=zeus"},
        {"--no-python -m p.sh", "do not go together"},
        {"--run-path p.py", "from / on"},
        {"--nproc-per-node", "needs a value"},
        {"--standalone", "no program to run: cohort launch"},
        {"--nproc-per-node ./p.sh", "--nproc-per-node took \"./p.sh\" as its value"},
        {"--nproc-per-node 2", "no program to run: cohort launch"},
        {"absent.py", "no program absent.py"},
        {".", "is a folder"},
    };

    succeeds("touch p.sh p.py");
    for (size_t i = 0; i < CO_COUNT(wrong); i++) {
        test_run r = test_sh("$COHORT launch %s", wrong[i][0]);
        CHECK(r.status == 2, "%s: exit status %d\n%s", wrong[i][0], r.status, r.out);
        CHECK(strstr(r.out, wrong[i][1]), "%s: no \"%s\" in\n%s", wrong[i][0], wrong[i][1], r.out);
        free(r.out);
    }
    test_run r = test_sh("PET_NPROC_PER_NODE=none $COHORT launch p.sh");
    CHECK(r.status == 2 && strstr(r.out, "none"), "%s", r.out);
    free(r.out);
}

TEST(a_taken_master_port_is_refused_with_who_has_it)
{
    int fd;

    CHECK_OK(co_net_listen(&fd, "", 0));
    co_addr here = co_net_local(fd);
    test_run r = test_sh("touch p.py; $COHORT launch --master-port=%d p.py", co_addr_port(&here));
    CHECK(r.status == 2 && strstr(r.out, "is taken by") && strstr(r.out, "(pid "), "%d: %s", r.status, r.out);
    free(r.out);
    close(fd);
}

TEST(help_shows_every_flag)
{
    test_run r = test_sh("$COHORT launch --help");

    CHECK(r.status == 0, "%d", r.status);
    for (size_t i = 0; i < CO_COUNT(table); i++)
        CHECK(strstr(r.out, table[i].name), "no %s", table[i].name);
    CHECK(strstr(r.out, "cohort launch --nproc-per-node=4 train.py"), "no example");
    free(r.out);
}
