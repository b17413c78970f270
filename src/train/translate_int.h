/* translate_int.h -- translating with two executors, one for the encoder and one for a step of the decoder:
 * by ranks, or in this process alone. Seen by this room only. */
#ifndef CO_TRAIN_TRANSLATE_INT_H
#define CO_TRAIN_TRANSLATE_INT_H

#include "text/text.h"
#include "train/graphs_int.h"
#include "train/translate.h"

enum { TRANSLATE_GROUP = 16 }; /* sentences that are translated together */

/* --- decoder.c: the executors, and what fits them. Read-only once made: ranks share it ------------------ */
typedef struct decoder {
    exec_set set; /* [0] encode, [1] step; n is 0: nothing is translated */
    co_step_room room;
    int beam;    /* how many translations of a sentence are followed at a time */
    int longest; /* tokens of a source, at most */
    int most;    /* tokens of a translation, at most, and one more */
    int caches;
    int64_t width, classes;
} decoder;
/* For sources of at most `longest` tokens. */
co_err decoder_init(decoder *out, const co_plan *plan, int beam, int longest);
void decoder_fini(decoder *d);
void *decoder_input(const decoder *d, const co_bases *bases, const char *name); /* of a step */
/* The sources through the encoder; its result becomes an input of the steps that follow. `beat` may be
 * NULL. */
void decoder_encode(const decoder *d, co_bases *bases, const co_source *source, int n, const co_run *run,
                    _Atomic uint32_t *beat);
/* What a step computed for its rows is kept for later steps, from row `kept` on. */
void decoder_keep(const decoder *d, const co_bases *bases, int kept, int rows);
int decoder_limit(const decoder *d, int source); /* tokens of a translation of a source of so many */

/* --- search.c: greedy or beam search. Allocates nothing after search_new -------------------------------- */
typedef struct beam_search beam_search;
co_err search_new(beam_search **out, const co_plan *plan, const decoder *d);
void search_free(beam_search *s); /* NULL is fine */
size_t search_bytes(const decoder *d);
/* Translates n sources, TRANSLATE_GROUP at most. `bases` has state, input, output and work for the
 * decoder's set. */
void search_run(beam_search *s, co_bases *bases, const co_source *source, int n, _Atomic uint32_t *beat);
/* The translation of source i of the last run; its text is NULL. Lives until the next run. */
co_translation search_best(const beam_search *s, int i);

/* --- translate_split.c: sentences of a split, and scores ------------------------------------------------ */
/* The sources of n samples from `first` on. tokens: room for n of the longest; offsets: [n + 1]. */
void read_sources(const co_dataset *d, co_split split, uint32_t first, int n, int32_t *offsets,
                  int32_t *tokens, co_source *source);

typedef struct scoring {
    const co_dataset *data;
    co_split split;
    co_str source, target;
    co_bleu bleu;
    co_error_rate cer, wer;
} scoring;
co_err scoring_add(scoring *s, uint32_t id, const char *predicted); /* s->source, s->target: of this sample */
co_translation_scores scoring_result(const scoring *s);
void scoring_fini(scoring *s);

/* --- translate_plan.c: what a run translates ------------------------------------------------------------ */
typedef struct translate_plan {
    decoder decoder;
    uint32_t n[CO_SPLIT_COUNT]; /* sentences of each split; 0: none */
    uint32_t most;              /* of any split */
} translate_plan;
co_err plan_translations(co_plan *plan);
size_t translation_stride(const co_plan *plan); /* int32_t of one sentence: how many tokens, then the tokens */
static inline uint32_t translate_groups(uint32_t n)
{
    return (n + TRANSLATE_GROUP - 1) / TRANSLATE_GROUP;
}

#endif
