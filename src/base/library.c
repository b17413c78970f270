/* library.c -- dlopen and dlsym. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

void *co_library_load(const char *file, co_library_names names, const co_symbol *symbols, size_t n,
                      const char **missing)
{
    void *library = dlopen(file, RTLD_NOW | (names == CO_LIBRARY_GLOBAL ? RTLD_GLOBAL : RTLD_LOCAL));

    if (missing)
        *missing = NULL;
    for (size_t i = 0; library && i < n; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            if (missing)
                *missing = symbols[i].name;
            dlclose(library);
            return NULL;
        }
        /* as POSIX recommends: C has no cast from an object pointer to a function pointer */
        memcpy(symbols[i].to, &symbol, sizeof symbol);
    }
    return library;
}
