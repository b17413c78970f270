/* pack_int.h -- a set of pictures as one file with an index: docs/formats/pack.md. */
#ifndef CO_DATA_PACK_INT_H
#define CO_DATA_PACK_INT_H

#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACK_HEAD = 128, PACK_ENTRY = 20, PACK_SET_LEN = 16, PACK_VERSION = 1 };
#define PACK_MAGIC "cohortpk"

typedef struct pack {
    char set[PACK_SET_LEN + 1]; /* the choice of data= that it was made of */
    uint64_t n, names_len, data_at, file_len;
    const uint8_t *entries; /* borrowed: n of PACK_ENTRY bytes */
    const char *names;
} pack;

/* Bytes from the file's start to the end of its index, by its first PACK_HEAD bytes. */
co_err pack_head(pack *out, const uint8_t head[PACK_HEAD], uint64_t file_len, const char *path);
/* Checks head and index, `len` bytes; borrows them. After it, every entry is within the file. */
co_err pack_index(pack *out, const uint8_t *bytes, size_t len, uint64_t file_len, const char *path);
uint64_t pack_index_end(const pack *p);
/* File i of n. */
const char *pack_file(const pack *p, uint64_t i, uint64_t *at, uint64_t *size);
/* Writes head and index of p into `bytes`, whose entries and names are in place. */
void pack_seal(uint8_t *bytes, const pack *p);

/* Does the name end in .pack? */
bool pack_named(const char *path);

#endif
