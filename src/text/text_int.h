/* text_int.h -- what the files of this room share: names and their numbers, and the parts of a tokeniser. */
#ifndef CO_TEXT_TEXT_INT_H
#define CO_TEXT_TEXT_INT_H

#include "base/alloc.h"
#include "base/json.h"
#include "text/text.h"
#include "text/unicode_int.h"

/* --- names.c: a number for each of many names --------------------------------------------------------- */
typedef struct name_slot {
    const char *text; /* NUL-terminated, the table's; NULL: a free slot */
    uint32_t len, hash;
    int64_t value;
} name_slot;
typedef struct name_table {
    name_slot *slot; /* [room], a power of two */
    size_t n, room;
    co_pool pool;
} name_table;
/* The slot of a name, made with value 0 if it is new; NULL: no memory. Valid until the next put. */
name_slot *name_put(name_table *t, const char *text, size_t len);
const name_slot *name_find(const name_table *t, const char *text, size_t len); /* NULL: it is not there */
void name_table_fini(name_table *t);

/* --- a tokeniser -------------------------------------------------------------------------------------- */
typedef enum { MODEL_WORDS, MODEL_BPE } model_kind;
typedef enum { CUT_WORDS, CUT_SPACES, CUT_BYTES } cut_kind;
typedef enum { DECODE_BLANKS, DECODE_BYTES, DECODE_SUFFIX } decode_kind;
enum { CUTS_MAX = 4 };

/* A pre-tokeniser: cuts text into the pieces that the model gets. */
typedef struct cutter {
    cut_kind kind;
    bool prefix, regex; /* CUT_BYTES: a blank is put before the text; it is cut as GPT-2 does */
} cutter;

/* A token that is looked for in the text before anything else happens to it. */
typedef struct added_token {
    const char *text; /* as it is looked for: through the normaliser, if `late` */
    size_t len;
    int32_t id;
    bool special;
    bool late; /* looked for after the normaliser ("normalized") */
} added_token;

typedef struct merge {
    uint64_t pair; /* left << 32 | right */
    uint32_t rank;
    int32_t id; /* what they become */
} merge;

struct co_tokenizer {
    name_table vocab;   /* of the model */
    const char **token; /* [size], those added too; NULL: no such number */
    bool *special;      /* [size] */
    int64_t size;
    added_token *added;
    size_t n_added;
    bool lower; /* the normaliser: everything becomes lower case */
    cutter cut[CUTS_MAX];
    int n_cuts;
    model_kind model;
    int32_t unknown; /* -1: none */
    merge *merges;   /* [n_merges], by pair */
    size_t n_merges;
    /* BPE: of pieces that do not begin a word, and of those that end one; "": none. */
    const char *inner_prefix, *end_suffix;
    bool fuse_unknown, bytes_back, words_first; /* BPE: fuse_unk, byte_fallback, ignore_merges */
    decode_kind decode;
    const char *decode_suffix;
    char *file;
    size_t file_len;
    co_pool pool;
};

/* Working memory of one encode. */
typedef struct encoding {
    const co_tokenizer *t;
    co_tokens *out;
    co_err err; /* the first; later calls do nothing */
} encoding;

void encode_piece(encoding *e, const char *text, size_t len); /* model.c: the tokens of a piece of text */
void encode_bpe(encoding *e, const char *text, size_t len);   /* bpe.c */
const merge *merge_find(const co_tokenizer *t, int32_t left, int32_t right); /* NULL: they do not merge */
void cut_text(encoding *e, int level, const char *text, size_t len); /* cut.c: all cutters from `level` on */
void push_token(encoding *e, int32_t id);
/* Cuts [text, text + len) into words and marks as \w+|[^\w\s]+ does. */
typedef void (*take_piece)(void *ctx, const char *text, size_t len);
void each_word(const char *text, size_t len, take_piece take, void *ctx);

/* ByteLevel's letters: every byte as a printable code point, and back (-1: it stands for none). */
uint32_t byte_letter(uint8_t byte);
int letter_byte(uint32_t code);

/* tokenizer_read.c and read_model.c */
co_err read_model(co_tokenizer *t, json_t *model);
/* Fails unless all keys of obj are among `keys`, separated by blanks. `what` names the object. */
co_err only_keys(json_t *obj, const char *what, const char *keys);
/* The file of a word-level tokeniser with these tokens, numbered from 0. */
void write_words(co_str *out, const char *const *token, size_t n);

#endif
