/* clock.c -- the two clocks of Linux. CLOCK_MONOTONIC never jumps. The wall clock may jump, so it is only
 * shown to people. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

uint64_t co_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

double co_now_s(void)
{
    return 1e-9 * (double)co_now_ns();
}

double co_wall_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void co_date(char *out, size_t size, const char *strftime_format, double wall_s)
{
    time_t t = (time_t)wall_s;
    struct tm tm;

    if (size == 0)
        return;
    if (!localtime_r(&t, &tm) || strftime(out, size, strftime_format, &tm) == 0)
        out[0] = '\0'; /* strftime leaves the buffer undefined when the text does not fit */
}

void co_stamp(char out[CO_STAMP], double wall_s)
{
    time_t s = (time_t)wall_s;
    struct tm tm;
    unsigned micro = (unsigned)((wall_s - (double)s) * 1e6) % 1000000;

    gmtime_r(&s, &tm);
    size_t n = strftime(out, CO_STAMP, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, CO_STAMP - n, ".%06uZ", micro);
}
