/* board.c -- `cohort board`: serves a live page over runs until it is asked to stop. */
#include "cli/cli_int.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "web/web.h"

const char board_usage[] =
    "  cohort board                          all runs below ./logs\n"
    "  cohort board logs/train/runs/DATE     one run\n"
    "  cohort board logs --port 8080\n"
    "  cohort board logs --host 0.0.0.0      for other machines, with a token\n\n"
    "  Prints the address and serves until Ctrl-C. The page shows curves with smoothing\n"
    "  and zoom, several runs over one another, hosts and ranks, logs, what differs in\n"
    "  the configuration, and log books; it follows runs that go on. It only reads.\n\n"
    "  --port N              default 0: any free port\n"
    "  --host ADDRESS        default 127.0.0.1; others need the printed token\n"
    "  --token TEXT          a token of your own, 16 letters or more\n\n"
    "  Needs libmicrohttpd (package libmicrohttpd12).\n";

static co_err serve(const co_board_spec *spec)
{
    co_board *board;
    sigset_t stops;
    int got;

    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    sigprocmask(SIG_BLOCK, &stops, NULL); /* before the server's thread starts: it inherits this */
    CO_TRY(co_board_start(&board, spec));
    printf("%s\n", co_board_url(board));
    fflush(stdout);
    co_say("serving %s; Ctrl-C ends it", spec->root);
    sigwait(&stops, &got);
    co_board_stop(board);
    return CO_OK;
}

int cmd_board(int argc, char **argv)
{
    const char *host = NULL, *port = "0", *token = NULL;
    const co_flag flags[] = {{"--host", "ADDRESS", .value = &host},
                             {"--port", "N", .value = &port},
                             {"--token", "TEXT", .value = &token},
                             {0}};
    line l;
    long long number = 0;
    co_err err = CO_OK;

    if (line_parse(&l, argc, argv, false, flags) != CO_OK)
        return co_say_error(CO_EINPUT);
    if (l.help) {
        line_free(&l);
        return show_usage("board");
    }
    if (l.n > 1)
        err = co_fail(CO_EINPUT, "board: one folder; %s is another", l.words[1]);
    else if (!co_str_to_i64(port, &number) || number < 0 || number > 65535)
        err = co_fail(CO_EINPUT, "board: --port %s is no port (0 to 65535)", port);
    else
        err = serve(&(co_board_spec){l.n ? l.words[0] : "logs", host, (int)number, token});
    line_free(&l);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}
