/* text.h -- tokenisers, and scores of translations. The only header of this room that other rooms include.
 *
 * A tokeniser turns text into numbers and back. Its file is the JSON of Hugging Face's tokenizers library:
 * files of that library are read, and a word-level tokeniser trained here is written byte for byte as the
 * library writes it.
 *
 *     co_tokenizer *words;
 *     co_tokens ids = {0};
 *     CO_TRY(co_tokenizer_read(&words, "tokenizer_en.json"));
 *     CO_TRY(co_tokenizer_encode(words, &ids, "How are you?", 12));     // ids.id[0..ids.n-1]
 *     co_tokens_fini(&ids);
 *     co_tokenizer_free(words);
 *
 * A tokeniser is read-only once made; any number of threads may use it.
 */
#ifndef CO_TEXT_TEXT_H
#define CO_TEXT_TEXT_H

#include "base/str.h"

typedef struct co_tokenizer co_tokenizer;

/* A growing list of token numbers. */
typedef struct co_tokens {
    int32_t *id;
    size_t n, room;
} co_tokens;
void co_tokens_fini(co_tokens *t);

/* CO_EINPUT names the file and the part of it that is wrong, or that this program does not know. *out is
 * the caller's (co_tokenizer_free). `what` names the source of the bytes in messages. */
co_err co_tokenizer_read(co_tokenizer **out, const char *path);
co_err co_tokenizer_parse(co_tokenizer **out, const char *bytes, size_t len, const char *what);
void co_tokenizer_free(co_tokenizer *t); /* NULL is fine */

/* The bytes of the tokeniser's file. Live as long as the tokeniser. */
const char *co_tokenizer_file(const co_tokenizer *t, size_t *len);
int64_t co_tokenizer_size(const co_tokenizer *t);                  /* one more than the highest number */
int32_t co_tokenizer_id(const co_tokenizer *t, const char *token); /* -1: there is no such token */
const char *co_tokenizer_token(const co_tokenizer *t, int64_t id); /* NULL: there is no such number */
/* The numbers of the tokens that begin and end a sentence and that fill up: the first known name that the
 * vocabulary has ([SOS], <s> ...). CO_EINPUT: it has none to begin or end with. `pad` is -1 if there is
 * none. */
typedef struct co_token_marks {
    int32_t begin, end, pad;
} co_token_marks;
co_err co_tokenizer_marks(const co_tokenizer *t, co_token_marks *out);

/* Appends the tokens of `text` to `out`; nothing is put before or after them. `text` is UTF-8. CO_ENOMEM;
 * CO_EINPUT: it has more than CO_TEXT_LINE bytes, or is no UTF-8. */
enum { CO_TEXT_LINE = 64 << 10 };
co_err co_tokenizer_encode(const co_tokenizer *t, co_tokens *out, const char *text, size_t len);
/* Appends the text of n tokens as the library's decode does: special tokens, and numbers that mean
 * nothing, are left out. Always UTF-8. */
void co_tokenizer_decode(const co_tokenizer *t, const int32_t *id, size_t n, co_str *out);

/* Counts words, then numbers them: first [UNK] [PAD] [SOS] [EOS], then the words by falling count, words
 * of one count in byte order. Words that occur less than min_count times are left out, and so are those
 * past most_tokens. */
typedef struct co_word_counter co_word_counter;
co_err co_word_counter_new(co_word_counter **out);
co_err co_word_counter_add(co_word_counter *c, const char *text, size_t len);
co_err co_word_counter_tokenizer(const co_word_counter *c, co_tokenizer **out, uint64_t min_count,
                                 size_t most_tokens);
void co_word_counter_free(co_word_counter *c); /* NULL is fine */

/* --- scores of translations -------------------------------------------------------------------------
 * Each is a struct of counts: start with zeros, add sentences, and add the structs of several processes
 * member by member. Texts are NUL-terminated UTF-8. */

/* BLEU as sacrebleu gives it by default: of the whole corpus, 4-grams, tokenizer 13a, smoothing exp, one
 * reference. */
typedef struct co_bleu {
    uint64_t correct[4],
        total[4]; /* n-grams of the predicted sentences that the references have, and all of them */
    uint64_t predicted, wanted; /* words */
    uint64_t sentences;
} co_bleu;
co_err co_bleu_add(co_bleu *b, const char *predicted, const char *wanted); /* CO_ENOMEM: b is unchanged */
double co_bleu_score(const co_bleu *b);                                    /* 0 to 100 */

/* Character and word error rate, as torchmetrics has them: edits needed, divided by the length of what was
 * wanted. */
typedef struct co_error_rate {
    uint64_t edits, wanted; /* characters, or words */
    uint64_t sentences;
} co_error_rate;
co_err co_cer_add(co_error_rate *r, const char *predicted, const char *wanted);
co_err co_wer_add(co_error_rate *r, const char *predicted, const char *wanted);
double co_error_rate_value(const co_error_rate *r); /* 0 without sentences; may exceed 1 */

#endif
