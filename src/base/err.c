/* err.c -- the thread's error text. One fixed buffer per thread: failing must not allocate. */
#include "base/err.h"

#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local char text[4096]; /* long enough for all mistakes of one command line */

co_err co_fail(co_err code, const char *fmt, ...)
{
    int saved = errno; /* for %m */
    char fresh[sizeof text];
    va_list ap;

    va_start(ap, fmt);
    errno = saved;
    vsnprintf(fresh, sizeof fresh, fmt, ap);
    va_end(ap);
    memcpy(text, fresh, sizeof text); /* an argument may have been co_errmsg() itself */
    return code;
}

co_err co_fail_in(co_err err, const char *fmt, ...)
{
    char fresh[sizeof text];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(fresh, sizeof fresh, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= (int)sizeof fresh - 3)
        return err;
    snprintf(fresh + n, sizeof fresh - (size_t)n, ": %.*s", (int)sizeof fresh - 3 - n, text);
    memcpy(text, fresh, sizeof text);
    return err;
}

const char *co_errmsg(void)
{
    return text;
}

void co_errclear(void)
{
    text[0] = '\0';
}

void co_assert_failed(const char *cond, const char *why, const char *file, int line)
{
    void *frames[32];
    char msg[512];
    int n = snprintf(msg, sizeof msg, "cohort: bug at %s:%d (pid %d): %s: %s\n", file, line, (int)getpid(),
                     cond, why);

    if (n > 0 && write(STDERR_FILENO, msg, (size_t)n) < 0)
        abort();
    backtrace_symbols_fd(frames, backtrace(frames, (int)CO_COUNT(frames)), STDERR_FILENO);
    abort();
}
