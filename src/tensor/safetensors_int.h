/* safetensors_int.h -- what safetensors_header.c and safetensors_read.c share. */
#ifndef CO_TENSOR_SAFETENSORS_INT_H
#define CO_TENSOR_SAFETENSORS_INT_H

#include <stdbool.h>

#include "base/alloc.h"
#include "tensor/safetensors.h"

enum { ST_LENGTH = 8 }; /* bytes of the length word in front of the header */

typedef struct meta_pair {
    const char *key, *value;
} meta_pair;

struct co_st_file {
    co_pool pool; /* owns names, metadata and `what` */
    const char *what;
    co_st_tensor *tensor; /* [n] in order of offset */
    const co_st_tensor **by_name;
    int n;
    meta_pair *meta; /* [n_meta] in order of key */
    int n_meta;
    bool has_meta;
    int fd; /* -1 if parsed from memory */
};

/* The header's length, read from the length word and checked against the limit and file_len. */
co_err st_parse_length(uint64_t *out, const char *bytes, uint64_t file_len, const char *what);

#endif
