/* pickle_int.h -- the values of a pickle, read without running anything.
 *
 * A pickle is a program for a small stack machine. Python's own reader lets it import any function and call
 * it. This one knows plain values, and a fixed list of names ("globals"): OrderedDict, torch's storages and
 * the functions that put a tensor together. Any other name is an error, or, on request, an OBJECT that stands
 * for whatever Python would have made: it has no content and can only be thrown away.
 *
 *     co_pool pool = {0};
 *     const pickle_value *root;
 *     CO_TRY(pickle_parse(&root, &pool, bytes, len, "model.pth", false));
 *     const pickle_value *t = pickle_get(root, "fc.weight");       // NULL: no dict, or no such key
 */
#ifndef CO_CKPT_PICKLE_INT_H
#define CO_CKPT_PICKLE_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/err.h"

typedef enum {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT,
    PICKLE_GLOBAL,
    PICKLE_STORAGE,
    PICKLE_TENSOR,
    PICKLE_OBJECT
} pickle_kind;

typedef struct pickle_value pickle_value;
struct pickle_value {
    pickle_kind kind;
    union {
        int64_t number; /* BOOL, INT */
        double real;
        struct {
            const char *text; /* NUL-terminated; may have NULs inside */
            size_t len;
        };
        struct {
            pickle_value **item; /* [n]; a DICT's are key, value, key, value ... in order of insertion */
            size_t n, room;
        };
        const struct pickle_global *global;
        struct {
            const char *dtype, *key; /* the safetensors name of its elements; the archive's entry data/KEY */
            int64_t elements;
            int element_size;
        } storage;
        struct {
            const pickle_value *storage, *offset, *size, *stride; /* kinds STORAGE, INT, TUPLE, TUPLE */
        } tensor;
    };
};

/* All values live in the pool. What is wrong is CO_EFORMAT; a name that is not on the list is CO_EINPUT, and
 * the message says which. Memory: up to 100 bytes for each byte of the pickle. */
co_err pickle_parse(const pickle_value **out, co_pool *pool, const void *bytes, size_t len, const char *what,
                    bool drop_objects);

/* The value of a dict's text key; NULL if there is none, or `dict` is no dict. */
const pickle_value *pickle_get(const pickle_value *dict, const char *key);

/* --- globals.c: the names on the list ------------------------------------------------------------------- */
typedef struct pickle_global {
    const char *module, *name;
    const char *dtype; /* a storage's; NULL: none */
    int element_size;
    /* What a call gives; args is a TUPLE. NULL: it cannot be called. CO_EFORMAT without a message: wrong
     * arguments. */
    co_err (*call)(pickle_value *out, const pickle_value *args);
} pickle_global;
const pickle_global *pickle_find_global(const char *module, const char *name); /* NULL: not on the list */

#endif
