#include "base/program.h"

#include <string.h>

static const char *called = "cohort";
static co_str typed; /* `called`, quoted for a shell if needed */

void co_program_set(const char *argv0)
{
    /* Our own children are started through /proc, a path that nobody types. */
    if (!argv0 || !*argv0 || strncmp(argv0, "/proc/", 6) == 0)
        return;
    called = argv0;
    co_str_clear(&typed);
    co_shell_word(&typed, argv0);
}

const char *co_program(void)
{
    return typed.len && !typed.failed ? co_str_text(&typed) : called;
}

const char *co_program_called(void)
{
    return called;
}

const char *co_program_name(void)
{
    const char *slash = strrchr(called, '/');

    return slash ? slash + 1 : called;
}

void co_shell_word(co_str *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./,:@%";

    if (*word && strspn(word, plain) == strlen(word)) {
        co_str_add(out, word);
        return;
    }
    co_str_add(out, "'");
    for (; *word; word++)
        co_str_addf(out, *word == '\'' ? "'\\%c'" : "%c", *word);
    co_str_add(out, "'");
}
