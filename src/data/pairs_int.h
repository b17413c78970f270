/* pairs_int.h -- pairs of sentences, as they stand in files. */
#ifndef CO_DATA_PAIRS_INT_H
#define CO_DATA_PAIRS_INT_H

#include "base/alloc.h"
#include "base/hash.h"
#include "data/csv_int.h"
#include "data/data_int.h"
#include "text/text.h"

enum { PAIRS_MOST = 1 << 26, PAIRS_LANG = 18 };

/* The two sides of a pair, in the list's text. CO_SIDE_SOURCE, CO_SIDE_TARGET. */
typedef struct sentence {
    uint32_t at, len; /* a NUL follows */
} sentence;
typedef struct pair {
    sentence side[2];
} pair;
typedef struct pair_list {
    co_str text;
    pair *pair; /* [n], in the order of the file */
    uint32_t n, room;
    int column[2]; /* columns 1 and 2 were assumed, or found by the file's name: from 1 on; else 0 */
} pair_list;

typedef enum { PAIRS_TABS, PAIRS_JSON, PAIRS_TWO_FILES } pairs_format;

typedef struct pair_files {
    pairs_format format;
    char path[2][4096]; /* the second: PAIRS_TWO_FILES */
} pair_files;

/* What the user says of the files. */
typedef struct pair_ask {
    const char *lang[2]; /* "en", "it" */
    /* Columns of tab-separated files: a number from 1 on, or a name of the first line. NULL: the column
     * named by lang, or else the one that the file's name tells, or else 1 and 2. */
    const char *column[2];
    char named[2][PAIRS_LANG]; /* the languages of columns 1 and 2 by the file's name; "": it tells nothing */
} pair_ask;

/* Finds the file, or the two, in `dir`, which may also be the file itself. `patterns` are names of files,
 * with * and ?, separated by '|': the first one that fits any counts. */
co_err pairs_find(pair_files *out, const char *dir, const char *patterns, const pair_ask *ask);
/* Is there such a file? Of JSON lines the first few decide. Says no where pairs_find would only fail for other
 * reasons. */
bool pairs_fit(const char *dir);
/* JSON lines that are in `dir`, or are it, and are no pairs: adds what they are instead, for a message. */
void pairs_tell_other_json(const char *dir, co_str *found);
/* Do the first lines of this file hold pairs? If not, adds what they hold. Yes if it cannot be found out:
 * memory or the disk failed, and opening the set says so. */
bool pairs_json_fits(const char *path, co_str *found);

/* pairs_name.c: sets ask->named from the names of the file and its folder. */
void pairs_name(pair_ask *ask, const char *path);
/* Sets the columns, counted from 0, by ask->named, if that tells. CO_EINPUT: it tells other languages. */
co_err pairs_name_columns(const csv *table, const pair_ask *ask, int column[2]);

/* All pairs. Every line is checked; CO_EINPUT names file and line. Free with pair_list_fini, also after a
 * failure. */
co_err pairs_read(pair_list *out, const pair_files *files, const pair_ask *ask);
/* The same of streams of bytes, which are taken over. `second` is NULL but for PAIRS_TWO_FILES. */
co_err pairs_parse(pair_list *out, pairs_format format, packed *first, packed *second, const pair_ask *ask);
void pair_list_fini(pair_list *list);
const char *pair_text(const pair_list *list, uint32_t i, co_side side);
/* Adds a pair; trims blanks from both ends of its sides. `from` has the line, for messages. */
co_err pairs_add(pair_list *list, const csv *from, const char *const side[2], const pair_ask *ask);
co_err pairs_read_json(pair_list *out, csv *table, const pair_ask *ask);

/* part[n]: the split of each pair. All pairs of one source sentence are in the same split, and which it is
 * does not depend on the order of the lines: the source sentences are put in order by a hash of the seed
 * and their bytes; the first share is for val, the next for test. *sources: how many differ. */
typedef struct pair_shares {
    double val, test;
    uint64_t seed;
} pair_shares;
co_err pairs_split(uint8_t *part, const pair_list *list, const pair_shares *shares, uint32_t *sources);

/* --- the open set ------------------------------------------------------------------------------------- */
struct pairs {
    co_dataset base;
    pair_list list;   /* empty: the set was made from a vocabulary */
    uint32_t *place;  /* which pair each sample is: those to train on, then val, then test */
    int32_t *tokens;  /* shared: of each sample its source with begin and end, then its target's words */
    uint64_t *start;  /* shared: [samples + 1], where a sample's tokens begin */
    uint32_t *source; /* shared: [samples] tokens of the source */
    co_tokenizer *tokenizer[2];
    co_token_marks marks[2];
    char *lang[2];
    int64_t limit; /* data.max_len */
};
/* pairs_tokens.c: trains or reads the tokenizers, then makes tokens of all pairs; drops those that are too
 * long. */
typedef struct pair_words {
    const char *file[2]; /* of a tokenizer; NULL: trained on the pairs to train on */
    uint64_t min_count;
    size_t most_tokens;
} pair_words;
co_err pairs_tokenizers(struct pairs *set, const uint8_t *part, const pair_words *words);
co_err pairs_tokens(struct pairs *set, const uint8_t *part, uint32_t *left_out);
/* pairs_vocabulary.c */
void pairs_vocabulary(const co_dataset *d, co_str *out);
co_err pairs_open_vocabulary(co_dataset **out, const char *json, size_t len);
bool pairs_run_file(const co_dataset *d, int i, co_str *name, const char **bytes, size_t *len);
/* pairs.c */
struct pairs *pairs_new(const char *lang_src, const char *lang_tgt, int64_t limit); /* NULL: no memory */
co_err pairs_set_io(struct pairs *set, int64_t longest);                            /* from its tokenizers */
void pairs_close(co_dataset *d);

#endif
