/* own_pictures.c -- `cohort predict RUN FILE...`: predicts the classes of the user's own picture files.
 *
 * A line for each file: its name, then up to five classes with their probabilities, likeliest first. A file
 * that cannot be read has a line too; the reason is printed on standard error, and the exit status is 1.
 */
#include "cli/eval_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/maths.h"

/* Is the word a picture file (by its name), or a folder that is neither a run nor a checkpoint? */
static bool is_own(const char *word)
{
    if (strchr(word, '=') || *word == '-' || *word == '~')
        return false;
    if (co_fs_is_dir(word))
        return !has(word, "manifest.json") && !has(word, "checkpoints") && !has(word, "config.yaml");
    return co_picture_named(word);
}

/* Splits the line. The word after a flag with a value is that value. */
co_err take_own_files(own_files *own, int argc, char **argv)
{
    static const char *const valued[] = {"--split", "--limit", "--config-dir"};
    char **rest = co_array(2 * (size_t)argc + 2, sizeof *rest), **files = rest + argc + 1;
    bool is_value = true; /* the command's own name */

    if (!rest)
        return CO_ENOMEM;
    *own = (own_files){.argv = rest, .paths = (const char *const *)files};
    for (int i = 0; i < argc; i++) {
        if (!is_value && is_own(argv[i]))
            files[own->n++] = argv[i];
        else
            rest[own->argc++] = argv[i];
        is_value = false;
        for (size_t k = 0; k < CO_COUNT(valued); k++)
            is_value |= strcmp(argv[i], valued[k]) == 0;
    }
    return CO_OK;
}

/* --- the lines that are printed ------------------------------------------------------------------------- */

enum { TOP = 5 };

typedef struct shown {
    const co_dataset *data;
    bool logits;    /* were asked for */
    int unreadable; /* files that could not be read */
} shown;

/* The likeliest classes, likeliest first; of two equal ones the lower number first. */
static int top_classes(const co_prediction *r, int64_t top[TOP])
{
    int n = 0;

    for (int64_t c = 0; c < r->n; c++) {
        int at = n;
        while (at > 0 && r->values[c] > r->values[top[at - 1]])
            at--;
        if (at == TOP)
            continue;
        n += n < TOP;
        for (int i = n - 1; i > at; i--)
            top[i] = top[i - 1];
        top[at] = c;
    }
    return n;
}

static double probability_of(const co_prediction *r, int64_t c)
{
    return r->probability * co_exp((double)r->values[c] - (double)r->values[r->choice]);
}

static const char *class_text(const shown *s, int64_t c, char number[24])
{
    const char *name = s->data->class_name ? s->data->class_name(s->data, c) : NULL;

    snprintf(number, 24, "%lld", (long long)c);
    return name ? name : number;
}

static void print_own(void *ctx, const co_prediction *r)
{
    shown *s = ctx;
    int64_t top[TOP];
    char number[24];

    if (r->unreadable) {
        s->data->check(s->data, CO_SPLIT_TEST, (uint32_t)r->id);
        printf("%s unreadable\n", r->file);
        co_say("%s", co_errmsg());
        s->unreadable++;
        return;
    }
    printf("%s", r->file);
    for (int i = 0, n = top_classes(r, top); i < n; i++)
        printf("  %s %.4f", class_text(s, top[i], number), probability_of(r, top[i]));
    for (int64_t i = 0; i < r->n && s->logits; i++)
        printf(" %.9g", (double)r->values[i]);
    printf("\n");
}

static void print_own_json(void *ctx, const co_prediction *r)
{
    shown *s = ctx;
    int64_t top[TOP];
    char number[24];
    json_t *list = json_array(), *j;

    if (r->unreadable) {
        json_decref(list);
        s->unreadable++;
        s->data->check(s->data, CO_SPLIT_TEST, (uint32_t)r->id);
        co_json_print(json_pack("{s:s, s:b, s:s}", "file", r->file, "unreadable", 1, "why", co_errmsg()));
        return;
    }
    for (int i = 0, n = top_classes(r, top); i < n; i++)
        json_array_append_new(list, json_pack("{s:I, s:s, s:o}", "class", (json_int_t)top[i], "name",
                                              class_text(s, top[i], number), "probability",
                                              co_json_num(probability_of(r, top[i]))));
    j = json_pack("{s:s, s:I, s:s, s:o, s:o}", "file", r->file, "class", (json_int_t)r->choice, "name",
                  class_text(s, r->choice, number), "probability", co_json_num(r->probability), "top", list);
    if (s->logits) {
        json_t *values = json_array();
        for (int64_t i = 0; i < r->n; i++)
            json_array_append_new(values, co_json_num((double)r->values[i]));
        json_object_set_new(j, "logits", values);
    }
    co_json_print(j);
}

co_err predict_own_files(eval_line *t, const own_files *own, bool logits, int *status)
{
    co_dataset *files;

    CO_TRY(co_pictures_open(&files, co_plan_facts_of(t->plan)->data, own->paths, own->n));
    shown s = {.data = files, .logits = logits};
    co_err err = co_predict_on(t->plan, files, t->limit, t->line.json ? print_own_json : print_own, &s);
    co_dataset_close(files);
    *status = s.unreadable ? CO_EXIT_FAILED : CO_EXIT_DONE;
    return err;
}
