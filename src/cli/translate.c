/* translate.c -- `cohort predict` of a run on pairs of sentences: lines from standard input, a translated
 * line for each; with --split, the sentences of a split. And the scores that `cohort test` prints of such a
 * run.
 *
 * Lines are translated in groups, one by one if a person types them. A line that cannot be translated (not
 * UTF-8, too long) becomes an empty line, and standard error says why. A model that is hardly trained ends
 * most sentences at once; how many translations are empty is said at the end.
 */
#include "cli/eval_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AT_ONCE = CO_TRANSLATE_AT_ONCE, SHOWN = CO_SHOWN_TRANSLATIONS };

co_err read_beam(const char *text, int *out)
{
    long long n = 1;

    if (text && (!co_str_to_i64(text, &n) || n < 1 || n > CO_BEAM_MOST))
        return co_fail(CO_EINPUT, "--beam %s: a whole number from 1 to %d is needed; 1 is greedy", text,
                       CO_BEAM_MOST);
    *out = (int)n;
    return CO_OK;
}

bool translates(const eval_line *t)
{
    return co_plan_facts_of(t->plan)->data->io.task == CO_TASK_PAIRS && t->app.spec.model->decoder;
}

/* --- empty translations --------------------------------------------------------------------------------- */
struct empties {
    long long n, of; /* of so many sentences with a word in them */
};

static void count_empty(struct empties *e, bool has_words, const char *translation)
{
    e->of += has_words;
    e->n += has_words && !*translation;
}

static void say_empties(const struct empties *e)
{
    if (e->n)
        co_notice("%lld of %lld translation%s empty: the model ends a sentence at once, likely because it is "
                  "hardly "
                  "trained",
                  e->n, e->of, e->of == 1 ? " is" : "s are");
}

/* --- lines of standard input ---------------------------------------------------------------------------- */
struct group {
    co_source source[AT_ONCE];
    int place[AT_ONCE]; /* of each source among the lines of this group */
    char *text[AT_ONCE];
    int n, lines;
    bool json;
    struct empties empties;
};

static void take_text(void *ctx, int i, const co_translation *best)
{
    struct group *g = ctx;

    count_empty(&g->empties, g->source[i].n > 2, best->text); /* two tokens begin and end it */
    g->text[g->place[i]] = co_sprintf("%s", best->text);
}

static co_err flush(co_translator *t, struct group *g)
{
    co_err err = g->n ? co_translate(t, g->source, g->n, take_text, g) : CO_OK;

    for (int i = 0; i < g->lines; i++) {
        if (!err && g->json) {
            json_t *j = json_pack("{s:s}", "translation", g->text[i] ? g->text[i] : "");
            co_json_print(j);
        } else if (!err)
            printf("%s\n", g->text[i] ? g->text[i] : "");
        co_free(g->text[i]);
        g->text[i] = NULL;
    }
    for (int i = 0; i < g->n; i++)
        co_free((void *)g->source[i].token);
    g->n = g->lines = 0;
    fflush(stdout);
    return err;
}

/* Adds a line to the group. False: it cannot be translated, and was named. */
static bool add_line(struct group *g, const co_dataset *d, const char *text, size_t len, long long number)
{
    int room = (int)d->io.max_len;
    int32_t *tokens = co_array((size_t)room, sizeof *tokens);
    int n = tokens ? d->encode(d, text, len, tokens, room) : -1;

    g->lines++;
    if (n > 0 && n <= room) {
        g->place[g->n] = g->lines - 1;
        g->source[g->n++] = (co_source){tokens, n};
        return true;
    }
    co_free(tokens);
    if (n > room)
        co_notice("line %lld has %d tokens; the run was trained on sentences of up to %d: left empty", number,
                  n, room);
    else
        co_notice("line %lld: %s: left empty", number, co_errmsg());
    co_errclear();
    return false;
}

co_err predict_lines(eval_line *t, int beam, int *status)
{
    const co_dataset *d = co_plan_facts_of(t->plan)->data;
    co_translator *translator;
    struct group group = {.json = t->line.json};
    char *text = NULL;
    size_t room = 0;
    int most = isatty(STDIN_FILENO) ? 1 : AT_ONCE;
    long long number = 0;
    ssize_t len;

    CO_TRY(co_translator_open(&translator, t->plan, beam));
    co_err err = CO_OK;
    while (!err && (t->limit < 0 || number < t->limit) && (len = getline(&text, &room, stdin)) >= 0) {
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
            len--;
        if (!add_line(&group, d, text, (size_t)len, ++number))
            *status = CO_EXIT_FAILED;
        if (group.lines == most)
            err = flush(translator, &group);
    }
    if (!err && ferror(stdin))
        err = co_fail(CO_EIO, "standard input: %m");
    co_err last = flush(translator, &group);
    co_translator_close(translator);
    free(text);
    say_empties(&group.empties);
    return err ? err : last;
}

/* --- a split -------------------------------------------------------------------------------------------- */
struct printing {
    const eval_line *t;
    int shown;
    struct empties empties;
};

static void print_pair(void *ctx, const co_translated *p)
{
    struct printing *to = ctx;
    char lines[SAMPLE_LINES];

    count_empty(&to->empties, *p->source, p->predicted);
    if (to->t->line.json) {
        json_t *j = json_pack("{s:I, s:s, s:s, s:s}", "id", (json_int_t)p->id, "source", p->source, "target",
                              p->target, "predicted", p->predicted);
        co_json_print(j);
        return;
    }
    sample_lines(lines, p);
    printf("%s\n\n", lines);
}

static void say_scores(const co_translation_scores *s)
{
    co_say("BLEU %.2f  cer %.4f  wer %.4f  of %lld sentence%s%s", s->bleu, s->cer, s->wer,
           (long long)s->sentences, s->sentences == 1 ? "" : "s", few_sentences(s->sentences));
}

co_err predict_pairs(eval_line *t, int beam)
{
    co_translation_scores scores;

    struct printing to = {.t = t};

    CO_TRY(co_translate_split(t->plan, t->split, t->limit, beam, &scores, print_pair, &to));
    say_scores(&scores);
    say_empties(&to.empties);
    return CO_OK;
}

static void show_pair(void *ctx, const co_translated *p)
{
    struct printing *to = ctx;
    char lines[SAMPLE_LINES];

    count_empty(&to->empties, *p->source, p->predicted);
    if (to->t->line.json || ++to->shown > SHOWN)
        return;
    sample_lines(lines, p);
    co_say("%s", lines);
}

co_err score_translations(eval_line *t, int beam, co_translation_scores *out)
{
    struct printing to = {.t = t};

    CO_TRY(co_translate_split(t->plan, t->split, t->limit, beam, out, show_pair, &to));
    say_empties(&to.empties);
    return CO_OK;
}
