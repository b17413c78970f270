/* log.c -- formats a line and hands it to the sink.
 *
 * There is no lock: a lock that another thread holds during fork would stay locked for ever in the child. The
 * sink is set before threads start, so three atomics are enough. A sink that writes each line with one
 * write(2) needs no lock either.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include "base/alloc.h"

static _Atomic(co_log_sink) to;
static _Atomic(void *) to_ctx;
static _Atomic(int) to_least;

void co_log_to(co_log_sink sink, void *ctx, co_log_level least)
{
    atomic_store(&to, NULL);
    atomic_store(&to_ctx, ctx);
    atomic_store(&to_least, (int)least);
    atomic_store(&to, sink);
}

void co_log_say(co_log_level level, const char *fmt, ...)
{
    int saved = errno; /* for %m; and logging must not change the errno that the caller reports next */
    co_log_sink sink = atomic_load(&to);
    char line[1024], *text = line;
    va_list ap, again;

    if (!sink || (int)level < atomic_load(&to_least))
        return;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    if (n >= (int)sizeof line) {
        char *longer = co_alloc((size_t)n + 1);
        if (longer) { /* if there is no memory the line stays cut short */
            errno = saved;
            vsnprintf(longer, (size_t)n + 1, fmt, again);
            text = longer;
        }
    }
    va_end(again);
    va_end(ap);
    sink(atomic_load(&to_ctx), level, text);
    if (text != line)
        co_free(text);
    errno = saved;
}
