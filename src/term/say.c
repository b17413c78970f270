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

static const char *host;

void co_say_host(const char *name)
{
    host = name;
}

enum { LINE = 8192 };

/* text[n] is to be printed; there is room for the newline. */
static void print(char text[LINE], int n)
{
    if (listener.to) {
        listener.to(listener.ctx, text);
        return;
    }
    n = n < 0 ? 0 : n < LINE - 1 ? n : LINE - 2;
    text[n++] = '\n';
    fwrite(text, 1, (size_t)n, stderr);
}

void co_say(const char *fmt, ...)
{
    char text[LINE];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text - 1, fmt, ap);
    va_end(ap);
    print(text, n);
}

void co_notice(const char *fmt, ...)
{
    char text[LINE];
    va_list ap;
    int n = snprintf(text, 512, "cohort: %.400s%s", host ? host : "", host ? ": " : "");

    va_start(ap, fmt);
    int more = vsnprintf(text + n, sizeof text - 1 - (size_t)n, fmt, ap);
    va_end(ap);
    print(text, more < 0 ? n : n + more);
}

int co_say_error(co_err err)
{
    const char *line = co_errmsg();

    if (!*line)
        line = err == CO_ENOMEM ? "memory is out" : "it failed, and nothing says why (this is a bug in cohort)";
    for (;; line++) { /* all mistakes of a command line are reported in one message */
        size_t n = strcspn(line, "\n");
        co_notice("%.*s", (int)n, line);
        line += n;
        if (!*line)
            return co_exit_of(err);
    }
}
