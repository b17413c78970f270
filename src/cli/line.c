/* line.c -- the command line's words, and talk to standard error. */
#include "cli/cli_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

co_err line_parse(line *l, int argc, char **argv)
{
    *l = (line){.words = co_array((size_t)argc, sizeof *l->words)};
    if (!l->words)
        return CO_ENOMEM;
    for (int i = 1; i < argc; i++) {
        const char *w = argv[i];
        if (strcmp(w, "--json") == 0)
            l->json = true;
        else if (strcmp(w, "--help") == 0 || strcmp(w, "-h") == 0)
            l->help = true;
        else if (strncmp(w, "--config-dir=", 13) == 0)
            l->config_dir = w + 13;
        else if (strcmp(w, "--config-dir") == 0 && i + 1 < argc)
            l->config_dir = argv[++i];
        else
            l->words[l->n++] = w;
    }
    return CO_OK;
}

void line_free(line *l)
{
    co_free(l->words);
}

void say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int exit_of(co_err err)
{
    return err == CO_OK                                                ? EXIT_DONE
           : err == CO_EINPUT || err == CO_ENOMEM || err == CO_EFORMAT ? EXIT_USAGE
                                                                       : EXIT_FAILED;
}

int fail_usage(void)
{
    say("cohort: %s", co_errmsg());
    return EXIT_USAGE;
}
