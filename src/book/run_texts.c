/* run_texts.c -- the texts of a run, such as sample translations: of each name the last one. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN = 12 };

/* Is there a later text of this name? */
static bool is_outdated(const facts *f, size_t at, const char *name)
{
    for (size_t i = at + 1; i < co_run_event_count(f->run); i++) {
        const json_t *later = co_run_event(f->run, i);
        const char *its = co_json_str(later, "name");
        if (its && co_json_str(later, "text") && strcmp(its, name) == 0)
            return true;
    }
    return false;
}

/* "BLEU 21.4 of 32 sentences: few, so a rough figure" */
static void bleu(page *p, const facts *f, const char *split)
{
    enum { FEW = 200 };
    char score[32], count[32];

    snprintf(score, sizeof score, "%s/bleu", split);
    snprintf(count, sizeof count, "%s/sentences", split);
    double value = facts_last(f, score), n = facts_last(f, count);
    if (!isnan(value) && !isnan(n))
        page_text(p, "%s BLEU %.2f of %s sentence%s%s.", split, value, words_int(n).text, n == 1 ? "" : "s",
                  n < FEW ? ": few, so a rough figure" : "");
}

void run_texts(page *p, const facts *f)
{
    int shown = 0;

    for (size_t i = 0; i < co_run_event_count(f->run) && shown < SHOWN; i++) {
        const json_t *e = co_run_event(f->run, i);
        const char *name = co_json_str(e, "name"), *text = co_json_str(e, "text");
        long long step = 0;
        if (!name || !text || is_outdated(f, i, name))
            continue;
        if (shown++ == 0) {
            page_heading(p, "Texts");
            bleu(p, f, "val");
            bleu(p, f, "test");
        }
        co_json_i64(e, "step", &step);
        page_text(p, "%.100s, step %s:", name, words_int((double)step).text);
        page_code(p, text);
    }
}
