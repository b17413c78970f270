/* server_int.h -- the roster's server, as the carrier thread of the host that keeps the roster uses it. */
#ifndef CO_ROSTER_NET_SERVER_INT_H
#define CO_ROSTER_NET_SERVER_INT_H

#include <poll.h>

#include "roster/net/client_int.h"
#include "roster/net/role_int.h"

typedef struct server server;
enum { SERVER_FDS = CO_MAX_HOSTS + CO_STRANGERS + 2 };

/* Takes here->listener and local_fd, this host's own seat. */
co_err server_open(server **out, const co_terms *terms, const co_meet *where, const role *here, co_tls *tls,
                   int local_fd);
int server_fds(const server *srv, struct pollfd *fds, int most);
void server_turn(server *srv, double elapsed_ms);
/* all hosts hear that the job is over, unless it is already */
void server_end(server *srv, const co_leave *how);
void server_logs_to(server *srv, void (*log)(void *ctx, const char *lines, size_t n), void *ctx);
void server_logs_end(server *srv);   /* writes a line for each host whose last log lines are missing */
bool server_idle(const server *srv); /* the job is over, and every host knows */
bool server_over(const server *srv);
const co_leave *server_ending(const server *srv); /* once it is over */
void server_close(server *srv);                   /* NULL is fine */

/* For a keeper whose place another host could have taken (etcd/). */
void server_resume(server *srv, const past *before); /* continues the job of a keeper that was lost */
int server_losses(const server *srv);                /* hosts lost so far */
bool server_wants_clearance(const server *srv);      /* a round or view waits for server_clear */
/* None of the first `losses` hosts that were lost keeps a roster of its own. */
void server_clear(server *srv, int losses);

#endif
