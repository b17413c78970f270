/* translations.c -- pairs of sentences: what an evaluation translated, on the screen and in the record.
 *
 *     val BLEU 21.40  cer 0.4312  wer 0.5821  of 32 sentences: few, so a rough figure
 *     --------------------------------------------------------------------------------
 *         SOURCE: She sings well.
 *         TARGET: Lei canta bene.
 *      PREDICTED: Canta bene .
 *
 * The record has the scalars val/bleu, val/cer, val/wer and val/sentences, and a text line for each sample.
 */
#include "cli/train_int.h"

#include <stdio.h>
#include <string.h>

#include "cli/eval_int.h"

enum { SHOWN_BYTES = 1000 };

const char *few_sentences(int64_t n)
{
    return n < CO_FEW_SENTENCES ? ": few, so a rough figure" : "";
}

/* `margin` goes before each line. */
static void lay_out(char out[SAMPLE_LINES], const co_translated *t, const char *margin)
{
    char text[3][SHOWN_BYTES];

    co_utf8_clean(text[0], sizeof text[0], t->source);
    co_utf8_clean(text[1], sizeof text[1], t->target);
    co_utf8_clean(text[2], sizeof text[2], t->predicted);
    snprintf(out, SAMPLE_LINES, "%s   SOURCE: %s\n%s   TARGET: %s\n%sPREDICTED: %s", margin, text[0], margin,
             text[1], margin, text[2]);
}

void sample_lines(char out[SAMPLE_LINES], const co_translated *t)
{
    lay_out(out, t, " ");
}

/* Four spaces before a line make it code in Markdown, so the sentences stand as they are. */
static void record_sample(training *s, const co_eval_result *r, const char *split, int i)
{
    char name[48], lines[SAMPLE_LINES];

    snprintf(name, sizeof name, "%s/translation_%d", split, i + 1);
    lay_out(lines, &r->translations->shown[i], "    ");
    co_event_json(s->folder, json_pack("{sI ss ss}", "step", (json_int_t)r->step, "name", name, "text", lines));
}

static void record_scalar(training *s, int64_t step, const char *split, const char *what, double value)
{
    char name[32];

    snprintf(name, sizeof name, "%s/%s", split, what);
    co_event_scalar(s->folder, step, name, value);
}

static void tell_dashes(training *s)
{
    enum { COLUMNS = 80 };
    int width = s->console ? co_console_width(s->console) : COLUMNS, n = width < COLUMNS ? width : COLUMNS;
    char dashes[COLUMNS + 1];

    memset(dashes, '-', (size_t)n);
    dashes[n] = '\0';
    tell(s, "%s", dashes);
}

static void tell_sample(training *s, const co_translated *t)
{
    char lines[SAMPLE_LINES];

    tell_dashes(s);
    sample_lines(lines, t);
    tell(s, "%s", lines);
}

void translations_record(training *s, const co_eval_result *r)
{
    const co_translations *t = r->translations;
    const char *split = r->split == CO_SPLIT_VAL ? "val" : "test";

    if (!t)
        return;
    s->scores[r->split] = t->scores;
    record_scalar(s, r->step, split, "bleu", t->scores.bleu);
    record_scalar(s, r->step, split, "cer", t->scores.cer);
    record_scalar(s, r->step, split, "wer", t->scores.wer);
    record_scalar(s, r->step, split, "sentences", (double)t->scores.sentences);
    tell(s, "%s BLEU %.2f  cer %.4f  wer %.4f  of %lld sentence%s%s", split, t->scores.bleu, t->scores.cer,
         t->scores.wer, (long long)t->scores.sentences, t->scores.sentences == 1 ? "" : "s",
         few_sentences(t->scores.sentences));
    for (int i = 0; i < t->n; i++) {
        record_sample(s, r, split, i);
        tell_sample(s, &t->shown[i]);
    }
    if (t->n)
        tell_dashes(s);
}

void translations_put(const training *s, json_t *metrics)
{
    static const struct {
        co_split split;
        const char *name;
    } splits[] = {{CO_SPLIT_VAL, "val"}, {CO_SPLIT_TEST, "test"}};

    for (size_t i = 0; i < CO_COUNT(splits); i++) {
        const co_translation_scores *of = &s->scores[splits[i].split];
        const struct {
            const char *what;
            double value;
        } all[] = {{"bleu", of->bleu}, {"cer", of->cer}, {"wer", of->wer}, {"sentences", (double)of->sentences}};
        for (size_t k = 0; k < CO_COUNT(all) && of->sentences; k++) {
            char name[32];
            snprintf(name, sizeof name, "%s/%s", splits[i].name, all[k].what);
            json_object_set_new(metrics, name, co_json_num(all[k].value));
        }
    }
}
