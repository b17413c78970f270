/* score_int.h -- words and characters of the texts that are scored. */
#ifndef CO_TEXT_SCORE_INT_H
#define CO_TEXT_SCORE_INT_H

#include "text/text.h"

typedef struct word {
    const char *text; /* in the text that was split */
    uint32_t len;
} word;
typedef struct word_list {
    word *word; /* co_free */
    size_t n;
} word_list;
co_err split_words(word_list *out, const char *text);
co_err split_chars(uint32_t **out, size_t *count, const char *text); /* co_free */
bool word_same(const word *a, const word *b);

/* Appends the text as sacrebleu's tokenizer 13a writes it: marks parted from words by blanks. */
void tokenize_13a(co_str *out, const char *text);

#endif
