/* data.c -- `cohort data check|stats|pack DIR`: what a folder of data holds, what is wrong with it; one file
 * of it. `cohort data get NAME` is in data_get.c.
 *
 * Results go to standard output, progress to standard error. Exit status 1: something is wrong with the data,
 * and a sentence for each fault was printed.
 */
#include "cli/data_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/check.h"
#include "data/pack.h"

static const char *const split_names[] = {"train", "val", "test"};

/* --- progress ------------------------------------------------------------------------------------------- */
struct progress {
    bool bar; /* standard error is a terminal: one line, written again and again */
    uint64_t last_ns;
};

static void tell(void *ctx, uint64_t done, uint64_t of)
{
    struct progress *p = ctx;
    uint64_t now = co_now_ns();

    if (!p->bar && now - p->last_ns < 10000000000u)
        return;
    p->last_ns = now;
    fprintf(stderr, "%s%llu of %llu samples read%s", p->bar ? "\r" : "", (unsigned long long)done,
            (unsigned long long)of, p->bar ? " " : "\n");
}

static co_err run_check(co_data_report *r, const char *dir)
{
    struct progress p = {.bar = isatty(STDERR_FILENO), .last_ns = co_now_ns()};
    co_err err = co_data_check(r, dir, tell, &p);

    if (p.bar)
        fprintf(stderr, "\r%48s\r", "");
    return err;
}

/* --- printing ------------------------------------------------------------------------------------------- */
static void spread(const co_data_report *r, int s, uint32_t *least, uint32_t *most)
{
    *least = *most = r->per_class[s][0];
    for (int64_t c = 1; c < r->set->io.classes; c++) {
        uint32_t n = r->per_class[s][c];
        *least = n < *least ? n : *least;
        *most = n > *most ? n : *most;
    }
}

static void print_splits(const co_data_report *r)
{
    uint32_t least, most;

    for (int s = 0; s < CO_SPLIT_COUNT && r->set; s++) {
        if (!r->set->count[s])
            continue;
        printf("%-6s %9u sample%s", split_names[s], r->set->count[s], r->set->count[s] == 1 ? "" : "s");
        if (r->per_class[s]) {
            spread(r, s, &least, &most);
            printf(", %lld classes of %u to %u", (long long)r->set->io.classes, least, most);
        }
        if (r->unreadable[s])
            printf(", %llu unreadable", (unsigned long long)r->unreadable[s]);
        printf("\n");
    }
}

/* Pairs: vocabularies, and tokens of both sides; the source's without the two that begin and end it. */
static void print_pairs(const co_dataset *d)
{
    printf("vocabulary %lld of the source, %lld of the target\n", (long long)d->io.sources,
           (long long)d->io.classes);
    printf("%-28s %9s %9s %9s %9s\n", "words", "source", "longest", "target", "longest");
    for (int s = 0; s < CO_SPLIT_COUNT; s++) {
        double sum[2] = {0};
        int most[2] = {0};
        for (uint32_t i = 0; i < d->count[s]; i++) {
            int n[2] = {d->length(d, (co_split)s, i) - 2, d->target_length(d, (co_split)s, i) - 1};
            for (int side = 0; side < 2; side++) {
                sum[side] += n[side];
                most[side] = n[side] > most[side] ? n[side] : most[side];
            }
        }
        if (d->count[s])
            printf("%-28s %9.2f %9d %9.2f %9d\n", split_names[s], sum[0] / d->count[s], most[0],
                   sum[1] / d->count[s], most[1]);
    }
}

static void print_stats(const co_data_report *r)
{
    char shape[64];

    if (r->has_ratings)
        print_ratings(&r->ratings, &r->set->io);
    if (r->set && r->set->io.task == CO_TASK_PAIRS)
        print_pairs(r->set);
    if (!r->set || r->set->io.task != CO_TASK_CLASSIFY)
        return;
    printf("sample %s\n", co_shape_text(shape, sizeof shape, &r->set->io.x));
    if (r->has_pixels) {
        int planes = (int)r->set->io.x.d[0];
        for (int k = 0; k < 2; k++) {
            printf("%s", k ? "std   " : "mean  ");
            for (int c = 0; c < planes; c++)
                printf(" %.4f", k ? r->std[c] : r->mean[c]);
            printf("\n");
        }
    }
    printf("%-28s %9s %9s %9s\n", "class", "train", "val", "test");
    for (int64_t c = 0; c < r->set->io.classes; c++) {
        const char *name = r->set->class_name ? r->set->class_name(r->set, c) : NULL;
        printf("%-5lld %-22.22s %9u %9u %9u\n", (long long)c, name ? name : "", r->per_class[0][c],
               r->per_class[1][c], r->per_class[2][c]);
    }
}

static json_t *split_json(const co_data_report *r, int s)
{
    json_t *j = json_pack("{s:I, s:I}", "samples", (json_int_t)r->set->count[s], "unreadable",
                          (json_int_t)r->unreadable[s]);
    json_t *counts = r->per_class[s] ? json_array() : NULL;

    for (int64_t c = 0; counts && c < r->set->io.classes; c++)
        json_array_append_new(counts, json_integer(r->per_class[s][c]));
    if (counts)
        json_object_set_new(j, "per_class", counts);
    return j;
}

static json_t *names_json(const co_data_report *r)
{
    json_t *names = json_array();

    for (int64_t c = 0; c < r->set->io.classes; c++) {
        const char *name = r->set->class_name ? r->set->class_name(r->set, c) : NULL;
        json_array_append_new(names, name ? co_json_string(name) : json_integer(c));
    }
    return names;
}

static void print_report(const co_data_report *r, const char *dir)
{
    json_t *j = json_pack("{s:o, s:s, s:b}", "dir", co_json_string(dir), "data", r->layout->data, "good",
                          r->n_problems == 0);
    json_t *problems = json_array();

    if (r->set && r->per_class[0])
        json_object_set_new(j, "classes", names_json(r));
    for (int s = 0; s < CO_SPLIT_COUNT && r->set; s++)
        json_object_set_new(j, split_names[s], split_json(r, s));
    if (r->has_ratings)
        json_object_set_new(j, "ratings", ratings_json(&r->ratings, &r->set->io));
    for (int k = 0; k < 2 && r->has_pixels; k++) {
        json_t *list = json_array();
        for (int c = 0; c < (int)r->set->io.x.d[0]; c++)
            json_array_append_new(list, json_real(k ? r->std[c] : r->mean[c]));
        json_object_set_new(j, k ? "std" : "mean", list);
    }
    for (int i = 0; i < r->n_problems; i++) {
        const co_data_problem *p = &r->problems[i];
        json_array_append_new(problems, json_pack("{s:s, s:I, s:o}", "kind", p->kind, "count",
                                                  (json_int_t)p->count, "text", co_json_string(p->text)));
    }
    json_object_set_new(j, "problems", problems);
    co_json_print(j);
}

/* --- the command ---------------------------------------------------------------------------------------- */
static int check(const line *l, bool stats)
{
    const char *dir = l->words[1];
    co_data_report r;
    co_err err = run_check(&r, dir);

    if (err)
        return co_say_error(err);
    if (l->json) {
        print_report(&r, dir);
    } else {
        printf("%s: %s, data=%s\n", dir, r.layout->title, r.layout->data);
        if (r.set && r.set->note[0])
            printf("%s\n", r.set->note);
        print_splits(&r);
        if (stats)
            print_stats(&r);
        for (int i = 0; i < r.n_problems; i++)
            printf("problem: %s\n", r.problems[i].text);
        if (!r.n_problems)
            printf("nothing is wrong\n");
    }
    int status = r.n_problems ? CO_EXIT_FAILED : CO_EXIT_DONE;
    co_data_report_fini(&r);
    return status;
}

static int check_only(const line *l, const data_flags *flags)
{
    (void)flags;
    return check(l, false);
}

static int check_and_stats(const line *l, const data_flags *flags)
{
    (void)flags;
    return check(l, true);
}

static int pack(const line *l, const data_flags *flags)
{
    const char *out = flags->out;
    struct progress p = {.bar = isatty(STDERR_FILENO), .last_ns = co_now_ns()};
    co_pack_facts f;

    if (!out) {
        co_fail(CO_EINPUT,
                "data pack needs --out FILE.pack: cohort data pack tiny-imagenet-200 --out tiny.pack");
        return co_say_error(CO_EINPUT);
    }
    co_err err = co_data_pack(&f, l->words[1], out, tell, &p);
    if (p.bar)
        fprintf(stderr, "\r%48s\r", "");
    if (err)
        return co_say_error(err);
    if (l->json)
        co_json_print(json_pack("{s:o, s:s, s:I, s:I}", "file", co_json_string(out), "data", f.data, "files",
                                (json_int_t)f.files, "bytes", (json_int_t)f.bytes));
    else
        printf("%s: %llu files, %llu bytes; train with data=%s data.dir=%s\n", out,
               (unsigned long long)f.files, (unsigned long long)f.bytes, f.data, out);
    return CO_EXIT_DONE;
}

static const struct action {
    const char *name, *example;
    int (*run)(const line *l, const data_flags *flags);
    int most; /* words after the action's own; check, stats and pack need one */
} actions[] = {
    {"check", "cohort data check tiny-imagenet-200", check_only, 1},
    {"stats", "cohort data stats tiny-imagenet-200", check_and_stats, 1},
    {"pack", "cohort data pack tiny-imagenet-200 --out tiny.pack", pack, 1},
    {"get", "cohort data get cifar10 data", data_get, 2},
};

static int unknown(const char *what)
{
    const char *names[CO_COUNT(actions)];
    co_str all = {0};

    for (size_t i = 0; i < CO_COUNT(actions); i++) {
        names[i] = actions[i].name;
        co_str_addf(&all, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = co_str_nearest(what, names, CO_COUNT(names));
    co_notice("data has no \"%s\"%s%s%s there are %s", what, near ? "; did you mean " : "", near ? near : "",
              near ? "?" : ";", co_str_text(&all));
    co_str_fini(&all);
    return CO_EXIT_USAGE;
}

/* A flag that this action does not have; NULL: all are its own. */
static const char *foreign_flag(const char *action, const data_flags *flags)
{
    bool gets = strcmp(action, "get") == 0;

    if (flags->out && strcmp(action, "pack") != 0)
        return "--out";
    if (gets)
        return NULL;
    return flags->mirror    ? "--mirror"
           : flags->retries ? "--retries"
           : flags->force   ? "--force"
           : flags->keep    ? "--keep"
                            : NULL;
}

static int run_action(const line *l, const data_flags *flags)
{
    for (size_t i = 0; i < CO_COUNT(actions); i++) {
        const struct action *a = &actions[i];
        if (strcmp(l->words[0], a->name) != 0)
            continue;
        const char *flag = foreign_flag(a->name, flags);
        if (flag)
            return co_fail(CO_EINPUT, "data %s has no %s", a->name, flag), co_say_error(CO_EINPUT);
        if (l->n - 1 <= a->most && (l->n == 2 || a->most == 2))
            return a->run(l, flags);
        co_fail(CO_EINPUT, "data %s takes %s: %s", a->name,
                a->most == 2 ? "a name and perhaps a folder" : "one folder", a->example);
        return co_say_error(CO_EINPUT);
    }
    return unknown(l->words[0]);
}

int cmd_data(int argc, char **argv)
{
    data_flags flags = {0};
    line l;
    const co_flag table[] = {{"--out", "FILE", .value = &flags.out},
                             {"--mirror", "URL", .value = &flags.mirror},
                             {"--retries", "N", .value = &flags.retries},
                             {"--force", .on = &flags.force},
                             {"--keep", .on = &flags.keep},
                             {0}};

    if (line_parse(&l, argc, argv, false, table) != CO_OK)
        return co_say_error(CO_EINPUT);
    int status = l.help ? show_usage("data")
                 : l.n  ? run_action(&l, &flags)
                        : (show_usage("data"), CO_EXIT_USAGE);
    line_free(&l);
    return status;
}
