/* say.c -- lines for the user. Each is one write: other processes may write to the same terminal. */
#include "term/say.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/exit.h"

static struct {
    void (*to)(void *ctx, const char *line);
    void *ctx;
} listener;

void co_say_to(void (*to)(void *ctx, const char *line), void *ctx)
{
    listener.to = to;
    listener.ctx = ctx;
}

void co_say(const char *fmt, ...)
{
    char text[8192];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text - 1, fmt, ap);
    va_end(ap);
    if (listener.to) {
        listener.to(listener.ctx, text);
        return;
    }
    n = n < 0 ? 0 : n < (int)sizeof text - 1 ? n : (int)sizeof text - 2;
    text[n++] = '\n';
    fwrite(text, 1, (size_t)n, stderr);
}

int co_say_error(co_err err)
{
    const char *text = co_errmsg();

    if (!*text)
        text = err == CO_ENOMEM ? "memory is out" : "it failed, and nothing says why (this is a bug in cohort)";
    co_say("cohort: %s", text);
    return co_exit_of(err);
}
