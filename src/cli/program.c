/* program.c -- the name of this program in lines that a person may type: as it was called. */
#include "cli/cli_int.h"

#include <string.h>

static const char *called = "cohort";
static co_str typed; /* the same, quoted where a shell needs it */

void program_set_called(const char *argv0)
{
    /* Our own children are started through /proc: nobody types that. */
    if (!argv0 || !*argv0 || strncmp(argv0, "/proc/", 6) == 0)
        return;
    called = argv0;
    co_str_clear(&typed);
    shell_word(&typed, argv0);
}

const char *program_called(void)
{
    return typed.len && !typed.failed ? co_str_text(&typed) : called;
}

const char *program_name(void)
{
    const char *whole = app_program() == program_called() ? called : app_program();
    const char *slash = strrchr(whole, '/');

    return slash ? slash + 1 : whole;
}

void shell_word(co_str *out, const char *word)
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
