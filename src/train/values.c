/* values.c -- checks values that need more than a range: ranks, kernels, limits, intervals, times.
 *
 * The option tables call these checks while a line is read, so that all mistakes of a line are reported
 * together. The plan calls them again for a caller that filled in the fields itself.
 */
#include "train/plan_int.h"

#include <string.h>

#include "base/str.h"
#include "base/team.h"
#include "comm/mark.h"

co_err check_devices(const char *key, const char *text)
{
    long long n;
    int items = 1;

    if (strcmp(text, "auto") == 0 || (co_str_to_i64(text, &n) && n >= 1 && n <= CO_MAX_SLOTS))
        return CO_OK;
    for (const char *s = text; *s; s++)
        items += *s == ',';
    if (text[0] == '[')
        return co_fail(CO_EINPUT, "%s: %s: a list names GPUs; for %d rank%s: %s=%d", key, text, items,
                       items == 1 ? "" : "s", key, items);
    return co_fail(CO_EINPUT, "%s: \"%s\" is not auto or a number from 1 to %d", key, text, CO_MAX_SLOTS);
}

co_err check_threads(const char *key, const char *text)
{
    long long n;

    if (strcmp(text, "auto") == 0 || (co_str_to_i64(text, &n) && n >= 1 && n <= CO_TEAM_MOST))
        return CO_OK;
    return co_fail(CO_EINPUT, "%s: \"%s\" is not auto or a number from 1 to %d", key, text, CO_TEAM_MOST);
}

co_err check_kernels(const char *key, const char *text)
{
    co_err err = co_kernels_check(text);
    return err ? co_fail_in(err, "%s", key) : CO_OK;
}

co_err check_slices(const char *key, const char *text)
{
    long long n;

    if (co_str_to_i64(text, &n) && n > 0 && (n & (n - 1)))
        return co_fail(CO_EINPUT, "%s: %lld is not a power of two (1, 2, 4, 8 ...)", key, n);
    return CO_OK;
}

co_err check_limit(const char *key, const char *text)
{
    long long n;

    if (co_str_to_i64(text, &n) && n == 0)
        return co_fail(CO_EINPUT, "%s: 0 is out of range (allowed: 1 or more; -1: no limit)", key);
    return CO_OK;
}

static bool is_fraction(const char *text, double least)
{
    double f;

    return strchr(text, '.') && co_str_to_f64(text, &f) && f >= least && f <= 1;
}

co_err check_train_batches(const char *key, const char *text)
{
    long long n;

    if ((co_str_to_i64(text, &n) && n >= 1) || is_fraction(text, 1e-300))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "%s: \"%s\" is neither a number of batches from 1 on (20) nor a fraction of an epoch, "
                   "above 0 and at most 1, with a point (0.1)",
                   key, text);
}

co_err check_eval_batches(const char *key, const char *text)
{
    long long n;

    if ((co_str_to_i64(text, &n) && n >= 0) || is_fraction(text, 0))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "%s: \"%s\" is neither a number of batches (20; 0: none) nor a fraction of the split, at "
                   "most 1, with a point (0.1)",
                   key, text);
}

co_err check_interval(const char *key, const char *text)
{
    long long n;

    if (strcmp(text, "null") == 0 || (co_str_to_i64(text, &n) && n >= 1) || is_fraction(text, 1e-300))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "%s: \"%s\" is not a number of steps (500) or a fraction of an epoch with a point (0.25)",
                   key, text);
}

co_err check_time(const char *key, const char *text)
{
    uint64_t ns;

    return strcmp(text, "null") == 0 ? CO_OK : parse_duration(text, &ns);
}
