/* text_int.h -- text of one character a token, as it stands in memory. */
#ifndef CO_DATA_TEXT_INT_H
#define CO_DATA_TEXT_INT_H

#include "data/data_int.h"

struct piece {
    uint32_t start;              /* byte in the file */
    uint32_t len : 31, ends : 1; /* characters, the newline that is not in [start...) among them if `ends` */
};

struct text {
    co_dataset base;
    char *bytes; /* the file, or the lines */
    size_t n_bytes;
    int max_len;
    struct piece *pieces; /* in the file's order */
    uint32_t *place;      /* which piece: see split_permute */
    int32_t *token_of;    /* [CO_CODE_POINTS] */
    uint32_t *code_of;    /* [classes], 0 for token 0 */
};

struct text *text_new(int max_len); /* without samples or tokens; closed by its own close. NULL: no memory */
/* Gives the code points that are marked in token_of, and the newline, their tokens. */
co_err text_number_tokens(struct text *t);

/* text_vocabulary.c */
void text_vocabulary(const co_dataset *d, co_str *out);
co_err text_open_vocabulary(co_dataset **out, const char *json, size_t len);

#endif
