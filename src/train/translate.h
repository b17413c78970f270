/* translate.h -- translates sentences with a model of pairs: greedily, or by a beam search.
 *
 *     co_translator *translator;
 *     CO_TRY(co_translator_open(&translator, plan, 1));                   // a plan of co_plan_to_look
 *     co_err err = co_translate(translator, sources, n, each, ctx);
 *     co_translator_close(translator);
 *
 * A training on pairs translates by itself after its evaluations: co_eval_result.translations.
 */
#ifndef CO_TRAIN_TRANSLATE_H
#define CO_TRAIN_TRANSLATE_H

#include "train/train.h"

typedef struct co_translator co_translator;
typedef struct co_source {
    const int32_t *token; /* of the sources' vocabulary, with begin and end */
    int n;
} co_source;
typedef struct co_translation {
    const int32_t *token; /* [n] without begin and end; as text: */
    int n;
    double score; /* mean log probability of a token, the end among them */
    const char *text;
} co_translation;
/* beam: how many translations of a sentence are followed at a time; 1: greedy. At most CO_BEAM_MOST. */
enum { CO_BEAM_MOST = 32, CO_TRANSLATE_AT_ONCE = 64 };
co_err co_translator_open(co_translator **out, co_plan *p, int beam);
void co_translator_close(co_translator *t); /* NULL is fine */
/* Any number of sources; CO_TRANSLATE_AT_ONCE of them are a good number. What `best` points to lives until
 * `each` returns. */
co_err co_translate(co_translator *t, const co_source *source, int n,
                    void (*each)(void *ctx, int i, const co_translation *best), void *ctx);

typedef struct co_translated {
    int64_t id; /* of the sample in its split */
    const char *source, *target, *predicted;
} co_translated;
typedef struct co_translation_scores {
    double bleu, cer, wer; /* BLEU: 0 to 100; error rates: shares of characters and words */
    int64_t sentences;
} co_translation_scores;
/* Translates samples [0, limit) of a split (< 0: all), and scores the translations against the targets.
 * `each` may be NULL. */
co_err co_translate_split(co_plan *p, co_split split, int64_t limit, int beam, co_translation_scores *out,
                          void (*each)(void *ctx, const co_translated *t), void *ctx);

/* Of an evaluation: the scores, and the first few translations. */
enum { CO_SHOWN_TRANSLATIONS = 3 };
typedef struct co_translations {
    co_translation_scores scores;
    int n;
    co_translated shown[CO_SHOWN_TRANSLATIONS];
} co_translations;

/* BLEU of fewer sentences than this differs by points from that of others of the same kind: whoever shows
 * it says so. */
enum { CO_FEW_SENTENCES = 200 };

#endif
