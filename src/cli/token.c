/* token.c -- `cohort token`: prints a new token for COHORT_TOKEN, for places where nobody can type one: a
 * Kubernetes Secret, or a batch job without munge. */
#include "cli/cli_int.h"

#include <string.h>

#include "net/net.h"

int cmd_token(int argc, char **argv)
{
    char text[CO_TOKEN_TEXT];
    co_token token;

    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return show_usage("token");
    if (argc > 1) {
        co_fail(CO_EINPUT, "token: no words are needed; %s is one", argv[1]);
        return co_say_error(CO_EINPUT);
    }
    co_err err = co_token_make(&token);
    if (err)
        return co_say_error(err);
    co_token_text(text, &token);
    puts(text);
    return CO_EXIT_DONE;
}
