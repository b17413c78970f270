/* lines.c -- `cohort predict --lines` of a run on text: what follows each line of standard input.
 *
 * The checkpoint has the characters, so the text file is not needed. All lines are read first; what a
 * person types is answered line by line.
 */
#include "cli/eval_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MOST = 1000000 };

bool continues_lines(const eval_line *t)
{
    return co_plan_facts_of(t->plan)->data->io.task == CO_TASK_LM && t->app.spec.vocabulary_only;
}

struct lines {
    char **line;
    int n, room;
    long long first; /* number of the first one of these, from 0 */
    void (*print)(void *ctx, const co_prediction *r);
    void *ctx;
};

static co_err add(struct lines *all, const char *text, size_t len)
{
    if (all->n == all->room) {
        int room = all->room ? 2 * all->room : 64;
        char **grown = co_realloc(all->line, (size_t)room * sizeof *grown);
        if (!grown)
            return CO_ENOMEM;
        all->line = grown;
        all->room = room;
    }
    if (memchr(text, 0, len))
        return co_fail(CO_EINPUT, "line %lld has a NUL byte", all->first + all->n + 1);
    if (!(all->line[all->n] = co_sprintf("%.*s", (int)len, text)))
        return CO_ENOMEM;
    all->n++;
    return CO_OK;
}

static void print_numbered(void *ctx, const co_prediction *r)
{
    const struct lines *all = ctx;
    co_prediction numbered = *r;

    numbered.id += all->first;
    all->print(all->ctx, &numbered);
}

/* Predicts the lines so far, and forgets them. */
static co_err flush(eval_line *t, struct lines *all)
{
    co_dataset *set = NULL;
    co_err err = CO_OK;

    if (all->n)
        err = co_lines_open(&set, co_plan_facts_of(t->plan)->data, (const char *const *)all->line, all->n,
                            all->first + 1);
    if (!err && set)
        err = co_predict_on(t->plan, set, -1, print_numbered, all);
    co_dataset_close(set);
    fflush(stdout);
    all->first += all->n;
    while (all->n)
        co_free(all->line[--all->n]);
    return err;
}

co_err predict_next(eval_line *t, void (*print)(void *ctx, const co_prediction *r), void *ctx)
{
    struct lines all = {.print = print, .ctx = ctx};
    int most = isatty(STDIN_FILENO) ? 1 : LINES_MOST;
    char *text = NULL;
    size_t room = 0;
    ssize_t len;
    co_err err = CO_OK;

    while (!err && (t->limit < 0 || all.first + all.n < t->limit) && (len = getline(&text, &room, stdin)) >= 0) {
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
            len--;
        err = add(&all, text, (size_t)len);
        if (!err && all.n == most)
            err = flush(t, &all);
    }
    if (!err && ferror(stdin))
        err = co_fail(CO_EIO, "standard input: %m");
    if (!err)
        err = flush(t, &all);
    while (all.n)
        co_free(all.line[--all.n]);
    co_free(all.line);
    free(text);
    return err;
}
