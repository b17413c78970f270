/* fs_cache.c -- where this program keeps what it can make again. */
#include "base/fs.h"

#include <stdio.h>
#include <stdlib.h>

co_err co_fs_cache(char *out, size_t size, const char *part)
{
    const char *own = getenv("COHORT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = (int)size;

    if (own && *own)
        n = snprintf(out, size, "%s/%s", own, part);
    else if (xdg && *xdg == '/')
        n = snprintf(out, size, "%s/cohort/%s", xdg, part);
    else if (home && *home == '/')
        n = snprintf(out, size, "%s/.cache/cohort/%s", home, part);
    if (n >= (int)size)
        return co_fail(CO_EIO, "there is no folder for a cache: set COHORT_CACHE to one");
    return co_fs_is_dir(out) ? CO_OK : co_fs_mkdirs(out);
}
