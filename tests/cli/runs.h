/* runs.h -- short runs of the program and what they leave behind, for the tests of the command line. */
#ifndef TESTS_CLI_RUNS_H
#define TESTS_CLI_RUNS_H

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "harness.h"

/* A small model whose steps take a fraction of a millisecond; 23 steps are an epoch. */
#define SMALL "data=digits model=mlp model.hidden=16 optim=adamw"

/* A file of JSON; the test's. */
static inline json_t *json_of(const char *fmt, const char *dir)
{
    char path[512];
    json_t *v = NULL;

    snprintf(path, sizeof path, fmt, dir);
    CHECK_OK(co_json_read(&v, path, 1 << 20));
    return v;
}

static inline const char *text_in(const json_t *v, const char *key)
{
    const char *s = co_json_str(v, key);

    CHECK(s, "no text \"%s\"", key);
    return s;
}

static inline long long number_in(const json_t *v, const char *key)
{
    long long n = 0;

    CHECK(co_json_i64(v, key, &n), "no whole number \"%s\"", key);
    return n;
}

/* weights_sha256 of a run's summary. */
static inline void sha_of_run(char sha[65], const char *dir)
{
    json_t *v = json_of("%s/summary.json", dir);

    snprintf(sha, 65, "%s", text_in(v, "weights_sha256"));
    json_decref(v);
}

static inline void succeeds(const char *line)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == 0, "%s: exit status %d\n%s", line, r.status, r.out);
    free(r.out);
}

static inline bool is_there(void *path)
{
    return co_fs_exists(path);
}

#endif
