/* book.c -- `cohort book`: the log book of a run, of all runs below a folder, or of runs side by side. */
#include "cli/cli_int.h"

#include <string.h>

#include "base/fs.h"
#include "book/book.h"

const char book_usage[] =
    "  cohort book logs/train/runs/DATE              print a run's log book, made anew\n"
    "  cohort book logs                              one log book of all runs below it\n"
    "  cohort book                                   the same of ./logs\n"
    "  cohort book compare A B C                     runs side by side, A is the base\n"
    "  cohort book compare A B --out report          write to report/ (else compare/)\n\n"
    "  Every run writes book.md, book.html and plots/ into its folder (run.book=false\n"
    "  leaves them out). book.html is one file that needs nothing else.\n\n"
    "  --out FOLDER          compare: where book.md, book.html and plots/ go\n"
    "  --json                the figures: an object, or of a folder an object per run\n";

/* Prints the text, or the figures: an array gives a line for each of its objects. */
static void show(co_str *text, json_t *take, bool json)
{
    size_t i;
    json_t *one;

    if (!json)
        fputs(co_str_text(text), stdout);
    else if (json_is_array(take))
        json_array_foreach(take, i, one) co_json_print(json_incref(one));
    else
        co_json_print(json_incref(take));
    json_decref(take);
}

static bool is_run(const char *dir)
{
    return has(dir, "header.json") || has(dir, "events.jsonl");
}

/* A run's folder, or one with runs below it. */
static co_err book_of(const char *dir, co_str *text, json_t **figures)
{
    if (!co_fs_exists(dir))
        return co_fail(CO_EINPUT, "book: %s does not exist; give a run's folder, or one with runs below it",
                       dir);
    return is_run(dir) ? co_book_of_run(dir, text, figures) : co_book_collect(dir, text, figures);
}

static co_err compare(const line *l, const char *out, co_str *text, json_t **figures)
{
    for (int i = 1; i < l->n; i++)
        if (!co_fs_exists(l->words[i]))
            return co_fail(CO_EINPUT, "book compare: %s does not exist; give the folders of runs", l->words[i]);
    co_err err = co_book_compare(l->words + 1, l->n - 1, out ? out : "compare", text, figures);
    return err ? co_fail_in(err, "book") : CO_OK;
}

static co_err book(const line *l, const char *out)
{
    co_str text = {0};
    json_t *figures = NULL;
    bool compares = l->n && strcmp(l->words[0], "compare") == 0;
    co_err err = CO_OK;

    if (out && !compares)
        err = co_fail(CO_EINPUT, "book: --out is for `cohort book compare`; a run's book is in its folder");
    else if (l->n > 1 && !compares)
        err = co_fail(CO_EINPUT,
                      "book: one folder at a time; `cohort book compare %s %s ...` shows runs side by side",
                      l->words[0], l->words[1]);
    else
        err = compares ? compare(l, out, &text, &figures)
                       : book_of(l->n ? l->words[0] : "logs", &text, &figures);
    if (!err)
        show(&text, figures, l->json);
    co_str_fini(&text);
    return err;
}

int cmd_book(int argc, char **argv)
{
    const char *out = NULL;
    const co_flag flags[] = {{"--out", "FOLDER", .value = &out}, {0}};
    line l;

    if (line_parse(&l, argc, argv, false, flags) != CO_OK)
        return co_say_error(CO_EINPUT);
    if (l.help) {
        line_free(&l);
        return show_usage("book");
    }
    co_err err = book(&l, out);
    line_free(&l);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}
