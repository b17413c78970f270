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

static co_err one_run(const char *dir, bool json)
{
    co_str text = {0};
    json_t *figures = NULL;
    co_err err = co_book_of_run(dir, &text, &figures);

    if (!err)
        show(&text, figures, json);
    co_str_fini(&text);
    return err;
}

static co_err book(const line *l, const char *out)
{
    if (out)
        return co_fail(CO_EINPUT, "book: --out is for `cohort book compare`; a run's book is in its folder");
    if (l->n != 1)
        return co_fail(CO_EINPUT, "book: give a run's folder");
    return one_run(l->words[0], l->json);
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
