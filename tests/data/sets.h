/* sets.h -- opening data sets in tests. */
#ifndef TESTS_DATA_SETS_H
#define TESTS_DATA_SETS_H

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "harness.h"

/* Opens `name` with options given as key, value, ..., NULL. */
static inline co_err set_try(co_dataset **out, const char *name, ...)
{
    const co_dataset_def *def = co_dataset_find(name);
    CHECK(def, "no data set %s", name);
    void *cfg = calloc(1, def->cfg_size + 1);
    co_err err = co_options_default(def->options, cfg);
    va_list ap;

    va_start(ap, name);
    for (const char *key; !err && (key = va_arg(ap, const char *));) {
        const co_option *row = co_option_find(def->options, key);
        CHECK(row, "%s has no option %s", name, key);
        err = co_option_set(row, cfg, key, va_arg(ap, const char *));
    }
    va_end(ap);
    if (!err)
        err = co_dataset_open(out, def, cfg);
    co_options_fini(def->options, cfg);
    free(cfg);
    return err;
}

/* The three sets; text is the verse. */
static inline co_dataset *set_open(const char *name)
{
    co_dataset *d = NULL;
    if (strcmp(name, "text") == 0)
        CHECK_OK(set_try(&d, name, "path", test_repo("tests/data/verse.txt"), (char *)NULL));
    else
        CHECK_OK(set_try(&d, name, (char *)NULL));
    return d;
}

#endif
