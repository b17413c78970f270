/* library.h -- optional shared libraries: loaded by name on first use, with their functions stored in
 * pointers. */
#ifndef CO_BASE_LIBRARY_H
#define CO_BASE_LIBRARY_H

#include <stddef.h>

typedef struct co_symbol {
    const char *name;
    void *to; /* address of a function pointer of the matching type */
} co_symbol;

/* are its symbols visible to others? */
typedef enum { CO_LIBRARY_LOCAL, CO_LIBRARY_GLOBAL } co_library_names;

/* Loads a library, which the caller keeps or closes with dlclose. NULL: it is not installed, or it lacks a
 * symbol, whose name is stored in *missing (unless `missing` is NULL). */
void *co_library_load(const char *file, co_library_names names, const co_symbol *symbols, size_t n,
                      const char **missing);

#endif
