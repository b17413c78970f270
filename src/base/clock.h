/* clock.h -- time. Durations from the monotonic clock, dates from the wall clock. */
#ifndef CO_BASE_CLOCK_H
#define CO_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t co_now_ns(void); /* CLOCK_MONOTONIC */
double co_now_s(void);    /* CLOCK_MONOTONIC in seconds */
double co_wall_s(void);   /* seconds since 1970 */
void co_date(char *out, size_t size, const char *strftime_format, double wall_s); /* local time */

/* "2026-11-16T10:04:05.123456Z": UTC, so that stamps compare as text. */
enum { CO_STAMP = 28 };
void co_stamp(char out[CO_STAMP], double wall_s);

#endif
