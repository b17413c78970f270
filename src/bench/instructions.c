/* instructions.c -- `cohort bench instructions`: how many instructions the kernels execute in one step of three small
 * models, by one rank.
 *
 * The program starts a copy of itself under callgrind, which counts only inside co_exec_run: the forward and backward
 * passes of every slice of step 1. Loading, planning and the optimiser are not counted. The same program gives the same
 * count on a busy machine, so a kernel that got slower shows where a time would not.
 *
 * A file keeps the counts by compiler, since each makes other instructions of the same source:
 *
 *     {"gcc 12.2.0": {"digits/mlp": 1234567, ...}, "clang 14.0.6": {...}}
 */
#include "bench/bench_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "kernel/kernel.h"
#include "train/measure.h"

#if defined(__clang__)
#define COMPILER_NAME    "clang"
#define COMPILER_NUMBERS __clang_major__, __clang_minor__, __clang_patchlevel__
#else
#define COMPILER_NAME    "gcc"
#define COMPILER_NUMBERS __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { INSTRUMENTED = 1 };
#else
enum { INSTRUMENTED = 0 };
#endif

enum { FILE_LIMIT = 1 << 20 };
static const double tolerance = 0.02;
static const char level[] = "avx2";

static const struct small_model {
    const char *name, *words;
} models[] = {
    {"digits/mlp", "data=digits model=mlp data.batch_size=64"},
    {"digits/cnn", "data=digits model=cnn data.batch_size=64"},
    {"fake_images/vit", "data=fake_images data.size=32 model=vit_tiny_patch4_32 data.batch_size=8 "
                        "model.embed_dim=48 model.depth=2 model.num_heads=2"},
};

typedef struct instruction_line {
    const char *compare, *record, *model;
    bool inside, json;
} instruction_line;

void instructions_help(co_str *out)
{
    co_str_add(out, "\n  --compare FILE  counts that differ by more than 2 % from the file's are an error;\n"
                    "                  a file without this compiler's counts is not\n"
                    "  --record FILE   put this compiler's counts into the file\n"
                    "  --model NAME    only this one:");
    for (size_t i = 0; i < CO_COUNT(models); i++)
        co_str_addf(out, " %s", models[i].name);
    co_str_add(out, "\n");
}

static const char *compiler(char text[48])
{
    snprintf(text, 48, "%s %d.%d.%d", COMPILER_NAME, COMPILER_NUMBERS);
    return text;
}

/* Under callgrind: the step of the training that the words describe. */
static co_err step_inside(const co_bench_planner *planner, const char *const *words)
{
    co_plan *plan;
    void *held;

    CO_TRY(planner->open(&plan, &held, words));
    co_err err = co_plan_compute_step(plan);
    planner->close(held);
    return err;
}

/* A copy of this program without debug information, of which valgrind cannot read every compiler's. */
static co_err strip_copy(const char *root)
{
    char own[4096], line[4300];
    ssize_t n = readlink(self(), own, sizeof own - 1);

    if (n < 0 || memchr(own, '\'', (size_t)n))
        return co_fail(CO_EFAIL,
                       "bench instructions: the program's own path is not known or has a quote in it");
    own[n] = 0;
    snprintf(line, sizeof line, "strip -g -o %s/cohort '%s'", root, own);
    return system(line) == 0 ? CO_OK
                             : co_fail(CO_EFAIL, "bench instructions: %s failed (package binutils)", line);
}

static co_err count(const struct small_model *m, const char *root, double *out)
{
    static const char common[] = "trainer.devices=1 trainer.threads=1 console=quiet";
    char command[1000];

    snprintf(command, sizeof command, "%s/cohort bench instructions --inside %s trainer.kernels=%s %s", root,
             common, level, m->words);
    *out = valgrind_count("--tool=callgrind --toggle-collect=co_exec_run --callgrind-out-file=/dev/null",
                          command);
    if (*out <= 0)
        return co_fail(CO_EFAIL,
                       "bench instructions: valgrind counted nothing in %s (is valgrind installed?)", m->name);
    return CO_OK;
}

/* How a count stands to the recorded one, which may be NULL; CO_EFAIL if it is too far off. */
static co_err compare(const char *name, double now, const json_t *recorded)
{
    double was = json_number_value(recorded), change = was > 0 ? now / was - 1 : 0;

    if (!recorded)
        return CO_OK;
    if (fabs(change) <= tolerance)
        return CO_OK;
    return co_fail(
        CO_EFAIL,
        "%s: %.0f instructions in a step, %+.1f %% against the %.0f recorded (%.0f %% are tolerated): %s",
        name, now, 100 * change, was, 100 * tolerance,
        change > 0 ? "a kernel got slower, or record what is meant with --record"
                   : "record the improvement with --record");
}

/* Counts, prints, compares; `counts` gets the numbers. All that differ are told. */
static co_err count_all(const instruction_line *l, const char *root, const char *key, const json_t *recorded,
                        json_t *counts)
{
    int differ = 0;

    for (size_t i = 0; i < CO_COUNT(models); i++) {
        const struct small_model *m = &models[i];
        double now;
        if (l->model && strcmp(l->model, m->name) != 0)
            continue;
        CO_TRY(count(m, root, &now));
        const json_t *was = json_object_get(recorded, m->name);
        json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:I}", "task", "instructions", "model", m->name,
                              "compiler", key, "kernels", level, "instructions", (json_int_t)now);
        if (was)
            json_object_set_new(j, "ratio", json_real(now / json_number_value(was)));
        co_json_print(j);
        fflush(stdout);
        json_object_set_new(counts, m->name, json_integer((json_int_t)now));
        if (compare(m->name, now, was) == CO_OK)
            continue;
        co_notice("%s", co_errmsg());
        differ++;
    }
    return differ ? co_fail(CO_EFAIL, "bench instructions: %d model%s not as recorded in %s", differ,
                            differ == 1 ? " is" : "s are", l->compare)
                  : CO_OK;
}

/* Puts the counts of this compiler into the file, beside those of others. */
static co_err record(const char *path, const char *key, const json_t *counts)
{
    json_t *file = NULL;

    if (access(path, F_OK) == 0)
        CO_TRY(co_json_read(&file, path, FILE_LIMIT));
    if (!file)
        file = json_object();
    json_t *own = json_object_get(file, key);
    if (own)
        json_object_update(own, (json_t *)(uintptr_t)counts);
    else
        json_object_set(file, key, (json_t *)(uintptr_t)counts);
    co_err err = co_json_write(file, path);
    json_decref(file);
    return err;
}

static co_err run(const instruction_line *l)
{
    char text[48], root[64];
    const char *key = compiler(text);
    json_t *file = NULL;

    CO_TRY(trial_folder(root));
    json_t *counts = json_object();
    co_err err = strip_copy(root);
    if (!err && l->compare)
        err = co_json_read(&file, l->compare, FILE_LIMIT);

    const json_t *recorded = json_object_get(file, key);
    if (!err && l->compare && !recorded)
        co_notice("NOTHING COMPARED: %s has no counts of %s; cohort bench instructions --record %s adds them",
                  l->compare, key, l->compare);
    if (!err)
        err = count_all(l, root, key, recorded, counts);
    if (!err && l->record)
        err = record(l->record, key, counts);
    json_decref(file);
    json_decref(counts);
    co_fs_remove_tree(root);
    return err;
}

/* A program or CPU for which the counts mean nothing: said, and no error. */
static bool cannot_count(void)
{
    const co_kernels *k;

    if (INSTRUMENTED)
        co_notice("NOTHING COUNTED: this program is built with a sanitizer");
    else if (co_kernels_get(&k, level) != CO_OK)
        co_notice("NOTHING COUNTED: %s", co_errmsg());
    else
        return false;
    return true;
}

static co_err check_model(const char *name)
{
    const char *names[CO_COUNT(models)];

    for (size_t i = 0; i < CO_COUNT(models); i++) {
        names[i] = models[i].name;
        if (!name || strcmp(name, names[i]) == 0)
            return CO_OK;
    }
    const char *near = co_str_nearest(name, names, CO_COUNT(names));
    return co_fail(CO_EINPUT, "bench instructions: no model %s%s%s%s", name, near ? "; did you mean " : "",
                   near ? near : "", near ? "?" : "");
}

int bench_instructions(int argc, char **argv, const co_bench_planner *planner)
{
    const char *words[BENCH_WORDS];
    instruction_line l = {0};

    co_err err = bench_settings("instructions", &argc, argv, words, 0);
    if (!err)
        err = co_flags_parse("bench instructions", argc, argv,
                             (const co_flag[]){{"--compare", "FILE", .value = &l.compare},
                                               {"--record", "FILE", .value = &l.record},
                                               {"--model", "NAME", .value = &l.model},
                                               {"--inside", .on = &l.inside},
                                               {"--json", .on = &l.json}, /* it always is JSON */
                                               {0}});
    if (!err)
        err = check_model(l.model);
    if (!err && l.inside)
        err = step_inside(planner, words);
    else if (!err && !cannot_count())
        err = run(&l);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}
