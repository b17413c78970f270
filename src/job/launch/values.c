/* values.c -- checks the value of a flag: a whole number, a time, one of several names. */
#include "job/launch/launch_int.h"

#include <string.h>

co_err flag_whole(int *out, const char *name, const char *text, int min, int max)
{
    long long n;

    if (!co_str_to_i64(text, &n) || n < min || n > max)
        return co_fail(CO_EINPUT, "launch: %s=%s: a whole number from %d to %d is needed", name, text, min,
                       max);
    *out = (int)n;
    return CO_OK;
}

co_err flag_seconds(double *out, const char *name, const char *text)
{
    double s;

    if (!co_str_to_f64(text, &s) || !(s >= 0 && s <= 1e7))
        return co_fail(CO_EINPUT, "launch: %s=%s: a number of seconds is needed", name, text);
    *out = s;
    return CO_OK;
}

co_err flag_one_of(const char *name, const char *text, const char *choices)
{
    size_t n = strlen(text);

    for (const char *at = choices; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == n && strncmp(at, text, n) == 0)
            return CO_OK;
    return co_fail(CO_EINPUT, "launch: %s=%s: one of %s is needed", name, text, choices);
}
