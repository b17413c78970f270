/* talk.c -- what the commands say: lines on standard error, an exit status for each error, JSON on standard output. */
#include "cli/cli_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
    void (*to)(void *ctx, const char *line);
    void *ctx;
} listener;

void say_to(void (*to)(void *ctx, const char *line), void *ctx)
{
    listener.to = to;
    listener.ctx = ctx;
}

void say(const char *fmt, ...)
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
    text[n++] = '\n'; /* in one write: other processes say things on the same terminal */
    fwrite(text, 1, (size_t)n, stderr);
}

int exit_of(co_err err)
{
    return err == CO_OK                                                ? EXIT_DONE
           : err == CO_ESTOP                                           ? EXIT_STOPPED
           : err == CO_EINPUT || err == CO_ENOMEM || err == CO_EFORMAT ? EXIT_USAGE
                                                                       : EXIT_FAILED;
}

int fail_usage(void)
{
    say("cohort: %s", co_errmsg());
    return EXIT_USAGE;
}

int fail_with(co_err err)
{
    say("cohort: %s", co_errmsg());
    return exit_of(err);
}

void print_json(json_t *take)
{
    char *text = take ? co_json_text(take) : NULL;

    if (text)
        puts(text);
    co_free(text);
    json_decref(take);
}

void add_shell_word(co_str *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./,:@%";

    co_str_add(out, " ");
    if (*word && strspn(word, plain) == strlen(word)) {
        co_str_add(out, word);
        return;
    }
    co_str_add(out, "'");
    for (; *word; word++)
        co_str_addf(out, *word == '\'' ? "'\\%c'" : "%c", *word);
    co_str_add(out, "'");
}
