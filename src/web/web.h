/* web.h -- `cohort board`: a live page over runs, served to a browser on this machine.
 *
 * The server only reads, and only run folders below one folder: a request names a run by the name that the
 * list of runs gave it, never by a path. It listens on the loopback interface; on another address every
 * request needs a token. Requests of foreign pages are refused (Origin, Host). libmicrohttpd (package
 * libmicrohttpd12) is loaded when a board starts.
 *
 *     co_board *board;
 *     CO_TRY(co_board_start(&board, &(co_board_spec){.root = "logs", .port = 8080}));
 *     puts(co_board_url(board));
 *     ...
 *     co_board_stop(board);
 */
#ifndef CO_WEB_WEB_H
#define CO_WEB_WEB_H

#include "base/err.h"

typedef struct co_board co_board;

typedef struct co_board_spec {
    const char *root;    /* a run folder, or one with runs below it */
    const char *address; /* to listen on; NULL: 127.0.0.1 */
    int port;            /* 0: any that is free */
    const char *token;   /* NULL: none on the loopback interface, a new one on others */
} co_board_spec;

/* CO_EINPUT: no such folder, no such address, the port is taken, or libmicrohttpd is not installed. */
co_err co_board_start(co_board **out, const co_board_spec *spec);
const char *co_board_url(const co_board *board); /* with the token, if there is one */
void co_board_stop(co_board *board);             /* NULL is fine */

#endif
