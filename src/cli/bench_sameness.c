/* bench_sameness.c -- the promise, shown: each column is one training run; each row runs it in another way; all rows of a
 * column must end with the same weights, bit for bit.
 *
 *     rows: ranks 1 2 3 4 8; loader threads; stopped at odd steps and continued with other ranks; a rank killed at a random
 *           instant; another build of the program (--other); and per kernel level: far equals ref.
 */
#include "cli/bench_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"
#include "cli/hashes.h"

typedef struct column {
    const char *name;
    int full; /* steps of the whole run */
    const char *words[12];
} column;

static const column columns[] = {
    {"digits/mlp",
     30,
     {"data=digits", "model=mlp", "model.dropout=0.2", "optim=adamw", "optim.lr=0.003", "data.batch_size=70",
      "trainer.clip_norm=1"}},
    {"digits/cnn",
     14,
     {"data=digits", "model=cnn", "model.width=8", "optim=sgd", "optim.lr=0.05", "optim.momentum=0.9",
      "data.batch_size=130"}},
    {"text/lm",
     12,
     {"data=text", "data.path=@text", "model=lm", "model.d_model=32", "model.dropout=0.1", "optim=adam",
      "optim.lr=0.003", "data.batch_size=33", "trainer.clip_norm=0.5"}},
    {"fake/linear", 45, {"data=fake", "model=linear", "optim=sgd", "optim.lr=0.05", "data.batch_size=100"}},
};

/* A part of a run: so many ranks, up to a step. The last part of a row goes to the end. */
typedef struct part {
    int ranks, until;
} part;

typedef struct row {
    const char *name, *kernels;
    part parts[4];
    const char *extra[5];
    bool other; /* by the other program */
} row;

static const row rows[] = {
    {"1 rank", "auto", {{1, 0}}, {0}, false},
    {"2 ranks", "auto", {{2, 0}}, {0}, false},
    {"3 ranks", "auto", {{3, 0}}, {0}, false},
    {"4 ranks", "auto", {{4, 0}}, {0}, false},
    {"8 ranks", "auto", {{8, 0}}, {0}, false},
    {"2 ranks, 2 loader threads", "auto", {{2, 0}}, {"data.workers=2"}, false},
    {"stopped at 3 and 7, ranks 2 3 1", "auto", {{2, 3}, {3, 7}, {1, 0}}, {0}, false},
    {"stopped at 5, ranks 1 8", "auto", {{1, 5}, {8, 0}}, {0}, false},
    {"a rank killed", "auto", {{3, 0}}, {"fault.phase=random", "fault.kills=2", "fault.mean_ms=5"}, false},
    {"other program, 2 ranks", "auto", {{2, 0}}, {0}, true},
    {"ref, 1 rank", "ref", {{1, 0}}, {0}, false},
    {"ref, 3 ranks", "ref", {{3, 0}}, {0}, false},
    {"far, 2 ranks", "far", {{2, 0}}, {0}, false},
    {"other program, ref", "ref", {{3, 0}}, {0}, true},
};

/* Lines of words of varying length: text that is the same everywhere without shipping any. */
static co_err write_text(const char *path)
{
    co_rng_key key = co_rng_key_make(7, CO_RNG_DATA);
    co_str s = {0};

    for (uint32_t i = 0; i < 220; i++) {
        uint32_t u[4];
        co_rng_draw(u, key, 1, 0, i, 0);
        for (uint32_t w = 0; w < 1 + u[0] % 9; w++) {
            uint32_t v[4];
            co_rng_draw(v, key, 2, w, i, 0);
            for (uint32_t k = 0; k < 1 + v[0] % 8; k++)
                co_str_addf(&s, "%c", (char)('a' + (v[1] >> k) % 7 + (v[2] >> k) % 13));
            co_str_add(&s, " ");
        }
        co_str_add(&s, "\n");
    }
    co_err err = co_str_err(&s);
    if (!err)
        err = co_fs_write_atomic(path, co_str_text(&s), strlen(co_str_text(&s)));
    co_str_fini(&s);
    return err;
}

/* One row of one column; the hash of its end. */
static co_err run_row(const column *c, const row *r, const char *program, const char *root, char sha[65],
                      char kernels[32])
{
    char text[128], steps[64], ranks[64], level[64], dir[96];

    snprintf(dir, sizeof dir, "%s/r", root);
    CO_TRY(co_fs_remove_tree(dir));
    CO_TRY(co_fs_mkdirs(dir));
    snprintf(text, sizeof text, "data.path=%s/text", root);
    snprintf(level, sizeof level, "trainer.kernels=%s", r->kernels);
    for (int i = 0; i < 4 && r->parts[i].ranks; i++) {
        const char *words[40];
        int n = 0;
        for (int k = 0; k < 12 && c->words[k]; k++)
            words[n++] = strcmp(c->words[k], "data.path=@text") == 0 ? text : c->words[k];
        for (int k = 0; k < 5 && r->extra[k]; k++)
            words[n++] = r->extra[k];
        snprintf(steps, sizeof steps, "trainer.max_steps=%d",
                 r->parts[i].until ? r->parts[i].until : c->full);
        snprintf(ranks, sizeof ranks, "trainer.devices=%d", r->parts[i].ranks);
        words[n++] = steps;
        words[n++] = ranks;
        words[n++] = level;
        words[n++] = "trainer.max_epochs=1000";
        words[n++] = "console=quiet";
        words[n++] = "ckpt_path=auto";
        words[n] = NULL;
        trial t;
        co_err err = trial_run(&t, program, dir, words);
        if (!err && t.status != 0)
            err = co_fail(CO_EFAIL, "%s, %s: exit status %d", c->name, r->name, t.status);
        if (!err) {
            const char *got = co_json_str(t.summary, "weights_sha256"),
                       *k = co_json_str(t.summary, "kernels");
            snprintf(sha, 65, "%s", got ? got : "");
            snprintf(kernels, 32, "%s", k ? k : "");
        }
        trial_free(&t);
        CO_TRY(err);
    }
    return CO_OK;
}

static const char *expected(const char *column_name, const char *kernels)
{
    for (size_t i = 0; i < CO_COUNT(expected_hashes); i++)
        if (strcmp(expected_hashes[i].column, column_name) == 0 &&
            strcmp(expected_hashes[i].kernels, kernels) == 0)
            return expected_hashes[i].sha;
    return NULL;
}

/* `far` is the reference level in other memory: it is held to ref's hashes. */
static void same_family(char kernels[32])
{
    if (strncmp(kernels, "far", 3) == 0)
        memcpy(kernels, "ref", 3);
}

static void print_row(const column *c, const row *r, const char *kernels, const char *sha, const char *want,
                      bool json)
{
    bool same = want && strcmp(sha, want) == 0;

    if (json)
        printf("{\"task\":\"sameness\",\"column\":\"%s\",\"row\":\"%s\",\"kernels\":\"%s\",\"weights_"
               "sha256\":\"%s\","
               "\"expected\":\"%s\",\"same\":%s,\"ratio\":%d}\n",
               c->name, r->name, kernels, sha, want ? want : "", same ? "true" : "false", same ? 1 : 0);
    else
        printf("%-12s %-34s %-8s %.16s  %s\n", c->name, r->name, kernels, sha,
               same   ? "same"
               : want ? "DIFFERENT"
                      : "no expected hash");
    fflush(stdout);
}

int bench_sameness(int argc, char **argv)
{
    bool json = false;
    const char *other = NULL;
    char root[64], path[96], sha[65], kernels[32];
    int wrong = 0, done = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--other") == 0 && i + 1 < argc)
            other = argv[++i];
        else
            return co_fail(CO_EINPUT, "bench sameness takes --json and --other PROGRAM, not \"%s\"", argv[i]),
                   fail_usage();
    }
    if (trial_folder(root) != CO_OK)
        return fail_usage();
    snprintf(path, sizeof path, "%s/text", root);
    co_err err = write_text(path);
    for (size_t c = 0; c < CO_COUNT(columns) && !err; c++)
        for (size_t r = 0; r < CO_COUNT(rows) && !err; r++) {
            if (rows[r].other && !other)
                continue;
            err = run_row(&columns[c], &rows[r], rows[r].other ? other : self(), root, sha, kernels);
            if (err)
                break;
            same_family(kernels);
            const char *want = expected(columns[c].name, kernels);
            print_row(&columns[c], &rows[r], kernels, sha, want, json);
            wrong += !want || strcmp(sha, want) != 0;
            done++;
        }
    if (err) {
        say("cohort: %s", co_errmsg());
        return EXIT_FAILED;
    }
    co_fs_remove_tree(root);
    say("%d of %d runs ended with the expected weights", done - wrong, done);
    return wrong ? EXIT_FAILED : EXIT_DONE;
}
