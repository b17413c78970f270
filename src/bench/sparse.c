/* sparse.c -- a factorisation of 20,000 and of 2,000,000 rows: does a step cost the same?
 *
 * Both run as whole `cohort train` commands with one rank, in turn, so that both meet the same machine; the
 * medians count. Instructions are counted by valgrind in bench_steps (bench/bench_steps.c), which trains in one
 * process: the difference of two lengths of run over the difference in steps. Without valgrind or bench_steps
 * (`make bench` builds it) the instructions are left out. `rows` are users and items together.
 */
#include "bench/bench_int.h"

#include <unistd.h>

enum { MAX_ROUNDS = 50, FEW = 200, MANY = 1200 };
static const int sizes[2] = {20000, 2000000};

typedef struct arms {
    int rounds, steps;
    double rate[2][MAX_ROUNDS], slower[MAX_ROUNDS];
    double instructions[2]; /* per step; 0: not counted */
} arms;

static co_err read_line(arms *a, int argc, char **argv)
{
    const char *rounds = NULL, *steps = NULL;
    bool json = false; /* it always is */
    long long n = 0;

    *a = (arms){.rounds = 5, .steps = 8000};
    CO_TRY(co_flags_parse("bench sparse", argc, argv,
                          (const co_flag[]){{"--rounds", "N", .value = &rounds},
                                            {"--steps", "N", .value = &steps},
                                            {"--json", .on = &json},
                                            {0}}));
    if (rounds && (!co_str_to_i64(rounds, &n) || n < 1 || n > MAX_ROUNDS))
        return co_fail(CO_EINPUT, "bench sparse: --rounds %s is not a number from 1 to %d", rounds, MAX_ROUNDS);
    a->rounds = rounds ? (int)n : a->rounds;
    if (steps && (!co_str_to_i64(steps, &n) || n < 10 || n > 1000000))
        return co_fail(CO_EINPUT, "bench sparse: --steps %s is not a number from 10 to 1000000", steps);
    a->steps = steps ? (int)n : a->steps;
    return CO_OK;
}

static co_err run_arm(arms *a, const char *root, int arm, int round)
{
    char users[48], items[48], steps[48];
    const char *words[] = {"model=factors",
                           "data=fake_ratings",
                           users,
                           items,
                           "data.count=1048576",
                           "data.batch_size=128",
                           "trainer.devices=1",
                           "trainer.threads=1",
                           steps,
                           "trainer.eval_every=0",
                           "test=false",
                           "callbacks.model_checkpoint.enabled=false",
                           "console=quiet",
                           NULL};
    trial t;

    snprintf(users, sizeof users, "data.users=%d", sizes[arm] / 2);
    snprintf(items, sizeof items, "data.items=%d", sizes[arm] / 2);
    snprintf(steps, sizeof steps, "trainer.max_steps=%d", a->steps);
    co_err err = trial_once(&t, root, words);
    a->rate[arm][round] = err ? 0 : trial_number(&t, "samples_per_s");
    trial_free(&t);
    return err;
}

/* Instructions of a whole run of bench_steps; 0: valgrind or bench_steps is not there. */
static double count(const char *program, int rows, int steps)
{
    char command[4300];

    snprintf(command, sizeof command, "'%s' %d %d", program, rows, steps);
    return valgrind_count("--tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null", command);
}

/* The program lies beside ours: build/cohort and build/release/bench/bench_steps. */
static void count_both(arms *a)
{
    char program[4200], dir[4096];

    if (!own_folder(dir, sizeof dir))
        return;
    snprintf(program, sizeof program, "%s/release/bench/bench_steps", dir);
    if (access(program, X_OK) != 0)
        return;
    for (int arm = 0; arm < 2; arm++) {
        double few = count(program, sizes[arm], FEW), many = count(program, sizes[arm], MANY);
        a->instructions[arm] = few > 0 && many > few ? (many - few) / (MANY - FEW) : 0;
    }
}

static void print(arms *a)
{
    double small = median(a->rate[0], a->rounds), large = median(a->rate[1], a->rounds);

    printf(
        "{\"task\":\"sparse\",\"model\":\"factors\",\"width\":32,\"batch\":128,\"ranks\":1,\"rows\":[%d,%d],"
        "\"samples_per_s\":[%.0f,%.0f],\"step_us\":[%.1f,%.1f],\"time_ratio\":%.3f,\"aim_samples_per_s\":"
        "500000,"
        "\"ratio\":%.3f",
        sizes[0], sizes[1], small, large, 128e6 / small, 128e6 / large, median(a->slower, a->rounds),
        small / 500000);
    if (a->instructions[0] > 0 && a->instructions[1] > 0)
        printf(",\"instructions_per_step\":[%.0f,%.0f],\"instructions_ratio\":%.4f", a->instructions[0],
               a->instructions[1], a->instructions[1] / a->instructions[0]);
    else
        co_say("instructions were not counted: valgrind and build/release/bench/bench_steps (make bench) are "
               "needed");
    printf("}\n");
}

int bench_sparse(int argc, char **argv)
{
    arms a;
    char root[64];

    if (read_line(&a, argc, argv) != CO_OK) {
        co_say("cohort: %s", co_errmsg());
        return CO_EXIT_USAGE;
    }
    co_err err = trial_folder(root);
    for (int i = 0; i < a.rounds && !err; i++) {
        for (int arm = 0; arm < 2 && !err; arm++)
            err = run_arm(&a, root, arm, i);
        a.slower[i] = err ? 0 : a.rate[0][i] / a.rate[1][i];
    }
    if (!err) {
        count_both(&a);
        print(&a);
    }
    return trial_ended(err, root);
}
