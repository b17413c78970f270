/* launch_token.c -- where a token comes from: COHORT_TOKEN, or somebody who reads it off the first host's screen. */
#include "cli/launch_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "net/net.h"

co_err launch_take_token(co_meet *where)
{
    char text[CO_TOKEN_TEXT];
    bool given;

    co_err err = co_token_take(text, &given);
    if (err)
        return co_fail_in(err, "launch");
    if (given)
        snprintf(where->token, sizeof where->token, "%s", text);
    return CO_OK;
}

/* A line without echo; false: end of file. */
static bool read_line(int tty, char *out, size_t size)
{
    struct termios before, quiet;
    bool can = tcgetattr(tty, &before) == 0;
    ssize_t n;

    if (can) {
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(tty, TCSAFLUSH, &quiet);
    }
    n = read(tty, out, size - 1);
    if (can)
        tcsetattr(tty, TCSAFLUSH, &before);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

co_err launch_ask_token(const co_terms *terms, co_meet *where)
{
    char typed[256];
    co_token t;

    if (!co_meet_needs_token(terms, where) || !isatty(STDERR_FILENO))
        return CO_OK; /* co_roster_open says what to do */
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (tty < 0)
        return CO_OK;
    for (int i = 0; i < 3 && !*where->token; i++) {
        dprintf(tty, "Token of the job at %s (the first host shows it): ", where->endpoint);
        if (!read_line(tty, typed, sizeof typed))
            break;
        dprintf(tty, "\n");
        if (co_token_parse(&t, typed))
            dprintf(tty, "%s\n", co_errmsg());
        else
            co_token_text(where->token, &t);
    }
    memset(typed, 0, sizeof typed);
    close(tty);
    return CO_OK;
}
