/* sameness.c -- checks that training gives the same weights however it is run. Each column is one training
 * run, and each row runs it in another way. All rows of a column must end with the same weights, bit for bit.
 *
 *     rows: ranks 1 2 3 4 8; threads of a rank; loader threads; stopped at odd steps and continued with other
 *           ranks; a rank killed at a random instant; another build of the program (--other); every kernel level
 */
#include "bench/bench_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "bench/hashes.h"

typedef struct column {
    const char *name;
    int full;    /* steps of the whole run */
    int stop[2]; /* the steps at which rows stop and continue */
    const char *words[24];
} column;

/* "@text" and "@pictures" stand for the folders that the bench makes, "@cifar" for the one that it finds. */
static const column columns[] = {
    {"digits/mlp",
     30,
     {3, 7},
     {"data=digits", "model=mlp", "model.dropout=0.2", "optim=adamw", "optim.lr=0.003", "data.batch_size=70",
      "trainer.clip_norm=1"}},
    {"digits/cnn",
     14,
     {3, 7},
     {"data=digits", "model=cnn", "model.width=8", "optim=sgd", "optim.lr=0.05", "optim.momentum=0.9",
      "data.batch_size=130"}},
    {"text/lm",
     12,
     {3, 7},
     {"data=text", "data.path=@text", "model=lm", "model.d_model=32", "model.dropout=0.1", "optim=adam",
      "optim.lr=0.003", "data.batch_size=33", "trainer.clip_norm=0.5"}},
    {"pairs/transformer",
     12,
     {3, 7},
     {"data=pairs", "data.dir=@pairs.tsv", "data.min_frequency=1", "model=transformer", "model.d_model=32",
      "model.layers=2", "model.heads=2", "model.d_ff=48", "model.dropout=0.1", "loss.label_smoothing=0.1",
      "optim=adam", "optim.eps=1e-9", "optim.lr=0.003", "data.batch_size=11", "trainer.clip_norm=0.5"}},
    {"fake/linear", 45, {3, 7}, {"data=fake", "model=linear", "optim=sgd", "optim.lr=0.05", "data.batch_size=100"}},
    {"ratings/factors",
     30,
     {3, 7},
     {"data=fake_ratings", "data.users=700", "data.items=300", "data.count=1500", "model=factors",
      "model.width=16", "optim=adamw", "optim.lr=0.01", "data.batch_size=100", "trainer.clip_norm=0.5"}},
    {"images/vit",
     8,
     {3, 7},
     {"data=fake_images", "data.size=32", "data.n=256", "model=vit_tiny_patch4_32", "model.embed_dim=48",
      "model.depth=3", "model.num_heads=3", "model.pos_drop_rate=0.1", "model.proj_drop_rate=0.1",
      "model.drop_rate=0.1", "model.drop_path_rate=0.2", "optim=adamw", "optim.lr=0.001",
      "data.batch_size=33", "trainer.clip_norm=1"}},
    {"pictures/fastnet",
     8,
     {3, 7},
     {"data=imagefolder",
      "data.dir=@pictures",
      "data.resize=18x18",
      "data.crop=20",
      "data.pad=2",
      "data.pad_mode=reflect",
      "data.flip=alternate",
      "data.eval_flip=true",
      "model=fastnet",
      "model.width1=16",
      "model.width2=32",
      "model.width3=32",
      "model.residual=true",
      "optim=sgd",
      "optim.lr=0.1",
      "optim.momentum=0.85",
      "optim.nesterov=true",
      "optim.freeze=whiten.weight",
      "optim.lr_groups=block?.norm?.bias:16",
      "optim.ema=0.9",
      "loss.label_smoothing=0.2",
      "data.batch_size=9",
      "trainer.slices=4"}},
    {"pictures/resnet50", 3, {1, 2}, {"data=imagefolder",   "data.dir=@pictures",
                                      "data.crop=32",       "data.random_resized_crop=true",
                                      "data.flip=true",     "data.brightness=0.4",
                                      "data.contrast=0.4",  "data.saturation=0.4",
                                      "data.hue=0.1",       "data.trivial_augment=true",
                                      "data.erase=0.5",     "data.mixup=0.2",
                                      "data.cutmix=1",      "model=resnet50",
                                      "optim=sgd",          "optim.lr=0.01",
                                      "optim.momentum=0.9", "optim.nesterov=true",
                                      "data.batch_size=8",  "trainer.slices=4",
                                      "test=false",         "trainer.eval_every=0"}},
    {"cifar10/resnet18",
     3,
     {1, 2},
     {"data=cifar10", "data.dir=@cifar", "data.augment=cifar", "model=resnet18", "optim=sgd", "optim.lr=0.02",
      "optim.momentum=0.9", "optim.nesterov=true", "optim.weight_decay=0.0005", "loss.label_smoothing=0.1",
      "data.batch_size=32", "trainer.slices=8", "test=false", "trainer.eval_every=0"}},
};

/* A part of a run: its number of ranks, and the stop of the column at which it ends. The last part of a row
 * runs to the end. */
enum { END, FIRST, SECOND };
typedef struct part {
    int ranks, until;
} part;

typedef struct row {
    const char *name, *kernels;
    part parts[4];
    const char *extra[5];
    bool other; /* run by the program given with --other */
} row;

static const row rows[] = {
    {"1 rank", "auto", {{1, END}}, {"trainer.threads=1"}, false},
    {"2 ranks", "auto", {{2, END}}, {0}, false},
    {"3 ranks", "auto", {{3, END}}, {0}, false},
    {"4 ranks", "auto", {{4, END}}, {0}, false},
    {"8 ranks", "auto", {{8, END}}, {0}, false},
    {"2 ranks x 3 threads, 2 loaders", "auto", {{2, END}}, {"trainer.threads=3", "data.workers=2"}, false},
    {"stopped twice, ranks 2 3 1", "auto", {{2, FIRST}, {3, SECOND}, {1, END}}, {0}, false},
    {"stopped once, ranks 1 8", "auto", {{1, SECOND}, {8, END}}, {0}, false},
    {"a rank killed", "auto", {{3, END}}, {"fault.phase=random", "fault.kills=2", "fault.mean_ms=5"}, false},
    {"other program, 2 ranks", "auto", {{2, END}}, {0}, true},
    {"ref, 1 rank", "ref", {{1, END}}, {0}, false},
    {"ref, 3 ranks", "ref", {{3, END}}, {0}, false},
    {"far, 2 ranks", "far", {{2, END}}, {0}, false},
    {"other program, ref", "ref", {{3, END}}, {0}, true},
};

typedef struct setting {
    const char *other, *columns, *cifar; /* another program; names, or NULL for all; a folder */
    char root[64];
    bool json;
} setting;

/* What "@name" stands for below `root`, or the folder given for cifar. */
static const char *stand_in(const char *word, const char *root, const char *cifar, char *room, size_t size)
{
    const char *at = strchr(word, '@');

    if (!at)
        return word;
    if (strcmp(at, "@cifar") == 0)
        snprintf(room, size, "%.*s%s", (int)(at - word), word, cifar);
    else
        snprintf(room, size, "%.*s%s/%s", (int)(at - word), word, root, at + 1);
    return room;
}

static int words_of(const char **words, const column *c, const row *r, const setting *s, char *room, size_t size)
{
    int n = 0;

    for (int k = 0; k < 24 && c->words[k]; k++)
        words[n++] = stand_in(c->words[k], s->root, s->cifar, room, size);
    for (int k = 0; k < 5 && r->extra[k]; k++)
        words[n++] = r->extra[k];
    words[n++] = "trainer.max_epochs=1000";
    words[n++] = "console=quiet";
    words[n++] = "ckpt_path=auto";
    if (r->parts[0].until == END) /* no later part continues from it */
        words[n++] = "callbacks.model_checkpoint.enabled=false";
    return n;
}

/* Runs one row of one column and gives the hash of the final weights. */
static co_err run_row(const column *c, const row *r, const setting *s, char sha[65], char kernels[32])
{
    const char *words[48];
    char path[4096], steps[64], ranks[64], level[64], dir[96];
    int n = words_of(words, c, r, s, path, sizeof path);

    snprintf(dir, sizeof dir, "%s/r", s->root);
    CO_TRY(co_fs_remove_tree(dir));
    CO_TRY(co_fs_mkdirs(dir));
    snprintf(level, sizeof level, "trainer.kernels=%s", r->kernels);
    for (int i = 0; i < 4 && r->parts[i].ranks; i++) {
        const part *p = &r->parts[i];
        snprintf(steps, sizeof steps, "trainer.max_steps=%d",
                 p->until == END ? c->full : c->stop[p->until - 1]);
        snprintf(ranks, sizeof ranks, "trainer.devices=%d", p->ranks);
        words[n] = level;
        words[n + 1] = steps;
        words[n + 2] = ranks;
        words[n + 3] = NULL;
        trial t;
        co_err err = trial_run(&t, r->other ? s->other : self(), dir, words);
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

/* `far` is the reference level in other memory, so it must match the hashes of ref. */
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
        printf("%-17s %-31s %-8s %.16s  %s\n", c->name, r->name, kernels, sha,
               same   ? "same"
               : want ? "DIFFERENT"
                      : "no expected hash");
    fflush(stdout);
}

/* Whether the column was requested and can be run. */
static bool wanted(const column *c, const setting *s)
{
    bool cifar = strncmp(c->name, "cifar", 5) == 0;
    size_t n = strlen(c->name);

    if (s->columns) {
        const char *at = s->columns;
        while (strncmp(at, c->name, n) != 0 || (at[n] != ',' && at[n] != '\0')) {
            at += strcspn(at, ",");
            if (!*at++)
                return false;
        }
    }
    if (cifar && !s->cifar)
        co_say("%s left out: no CIFAR-10 in data/cifar10 or cifar10; give --cifar FOLDER", c->name);
    return !cifar || s->cifar;
}

static co_err run_column(const column *c, const setting *s, int *done, int *wrong)
{
    char sha[65], kernels[32];

    for (size_t r = 0; r < CO_COUNT(rows); r++) {
        if (rows[r].other && !s->other)
            continue;
        CO_TRY(run_row(c, &rows[r], s, sha, kernels));
        same_family(kernels);
        const char *want = expected(c->name, kernels);
        print_row(c, &rows[r], kernels, sha, want, s->json);
        *wrong += !want || strcmp(sha, want) != 0;
        *done += 1;
    }
    return CO_OK;
}

static co_err read_setting(setting *s, int argc, char **argv)
{
    *s = (setting){.cifar = co_fs_is_dir("data/cifar10") ? "data/cifar10"
                            : co_fs_is_dir("cifar10")    ? "cifar10"
                                                         : NULL};
    CO_TRY(co_flags_parse("bench sameness", argc, argv,
                          (const co_flag[]){{"--other", "PROGRAM", .value = &s->other},
                                            {"--columns", "NAME,NAME", .value = &s->columns},
                                            {"--cifar", "FOLDER", .value = &s->cifar},
                                            {"--json", .on = &s->json},
                                            {0}}));
    if (s->cifar && !co_fs_is_dir(s->cifar))
        return co_fail(CO_EINPUT, "--cifar %s: there is no such folder", s->cifar);
    return trial_folder(s->root);
}

int bench_sameness(int argc, char **argv)
{
    setting s;
    int wrong = 0, done = 0;

    if (read_setting(&s, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = material_make(s.root);
    for (size_t c = 0; c < CO_COUNT(columns) && !err; c++)
        if (wanted(&columns[c], &s))
            err = run_column(&columns[c], &s, &done, &wrong);
    if (err) {
        co_notice("%s (logs in %s)", co_errmsg(), s.root);
        return CO_EXIT_FAILED;
    }
    co_fs_remove_tree(s.root);
    co_say("%d of %d runs ended with the expected weights", done - wrong, done);
    return wrong || !done ? CO_EXIT_FAILED : CO_EXIT_DONE;
}
