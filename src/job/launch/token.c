/* token.c -- gets a secret from the environment or from the user, who copies it from the first host's screen.
 * The typed text is not shown, and a signal during input (Ctrl-C, Ctrl-Z) restores the terminal. */
#include "job/launch/launch_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "net/net.h"

co_err token_from_env(co_meet *where)
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

static volatile sig_atomic_t came;

static void note_signal(int sig)
{
    came = sig;
}

static const int noted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

/* Waits for input or one of the noted signals. They are unblocked only during this wait, so no signal is lost
 * between a check and the wait. */
static ssize_t read_or_note(int tty, const sigset_t *outside, char *out, size_t size)
{
    struct pollfd p = {.fd = tty, .events = POLLIN};

    if (ppoll(&p, 1, NULL, outside) < 0)
        return -1;
    return read(tty, out, size);
}

/* Reads a line without echo; echo is off before the prompt appears. False: end of file. */
static bool read_line(int tty, const char *prompt, char *out, size_t size)
{
    struct sigaction mine = {.sa_handler = note_signal}, old[CO_COUNT(noted)];
    struct termios before, quiet;
    bool can = tcgetattr(tty, &before) == 0;
    sigset_t held, outside;

    came = 0;
    sigemptyset(&held);
    for (size_t i = 0; i < CO_COUNT(noted); i++)
        sigaddset(&held, noted[i]);
    sigprocmask(SIG_BLOCK, &held, &outside);
    for (size_t i = 0; i < CO_COUNT(noted); i++) {
        sigaction(noted[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN)
            sigaction(noted[i], &mine, NULL);
    }
    if (can) {
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(tty, TCSAFLUSH, &quiet);
    }
    dprintf(tty, "%s: ", prompt);
    ssize_t n = read_or_note(tty, &outside, out, size - 1);
    bool again = n < 0 && came;
    if (can)
        tcsetattr(tty, TCSAFLUSH, &before);
    for (size_t i = 0; i < CO_COUNT(noted); i++)
        sigaction(noted[i], &old[i], NULL);
    if (came)
        raise(came); /* takes effect when it is unblocked, after the terminal is restored */
    sigprocmask(SIG_SETMASK, &outside, NULL);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 || again; /* stopped and continued: prompt again */
}

bool ask_secret(const char *prompt, co_err (*take)(void *ctx, const char *typed), void *ctx)
{
    char typed[512];
    bool taken = false;
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);

    if (tty < 0)
        return false;
    for (int i = 0; i < 3 && !taken; i++) {
        if (!read_line(tty, prompt, typed, sizeof typed))
            break;
        dprintf(tty, "\n");
        taken = take(ctx, typed) == CO_OK;
        if (!taken)
            dprintf(tty, "%s\n", co_errmsg());
    }
    explicit_bzero(typed, sizeof typed);
    close(tty);
    return taken;
}

static co_err take_typed(void *ctx, const char *typed)
{
    co_meet *where = ctx;
    co_token t;

    CO_TRY(co_token_parse(&t, typed));
    co_token_text(where->token, &t);
    return CO_OK;
}

co_err token_from_user(const co_terms *terms, co_meet *where)
{
    char prompt[400];

    if (!co_meet_needs_token(terms, where) || !isatty(STDERR_FILENO))
        return CO_OK; /* co_roster_open says what to do */
    snprintf(prompt, sizeof prompt, "Token of the job at %s (the first host shows it)",
             where->etcd.members ? where->etcd.members : where->endpoint);
    ask_secret(prompt, take_typed, where);
    return CO_OK;
}
