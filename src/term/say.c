/* say.c -- prints lines for the user. Each line is one write, because other processes may write to the same
 * terminal. */
#include "term/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    const char *line = co_errmsg();

    if (!*line)
        line = err == CO_ENOMEM ? "memory is out" : "it failed, and nothing says why (this is a bug in cohort)";
    for (;; line++) { /* all mistakes of a command line are reported in one message */
        size_t n = strcspn(line, "\n");
        co_say("cohort: %.*s", (int)n, line);
        line += n;
        if (!*line)
            return co_exit_of(err);
    }
}
