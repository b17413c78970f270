/* library.h -- shared libraries that may be there: loaded by name when they are first needed, their functions into pointers. */
#ifndef CO_BASE_LIBRARY_H
#define CO_BASE_LIBRARY_H

#include <stddef.h>

typedef struct co_symbol {
    const char *name;
    void *to; /* a pointer to a function of that type */
} co_symbol;

typedef enum { CO_LIBRARY_LOCAL, CO_LIBRARY_GLOBAL } co_library_names; /* whether others see its names */

/* The library, the caller's to keep or to dlclose; NULL: it is not there, or *missing (if not NULL) is a name that it lacks. */
void *co_library_load(const char *file, co_library_names names, const co_symbol *symbols, size_t n,
                      const char **missing);

#endif
