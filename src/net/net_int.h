/* net_int.h -- shared inside net. */
#ifndef CO_NET_NET_INT_H
#define CO_NET_NET_INT_H

#include <openssl/ssl.h>

#include "net/net.h"

/* How long to wait now, in ms and at most `most`. Sets *err (CO_ETIMEOUT, CO_ESTOP) when patience is over. */
int patience_slice(const co_patience *p, int most, co_err *err);
/* Waits for events on fd. */
co_err patience_poll(int fd, int events, const co_patience *p);

SSL *tls_session(co_tls *tls, co_conn_side side); /* NULL: message set */
/* Turns this thread's last TLS error into a message about the other side of the connection. */
co_err tls_failure(SSL *ssl, int result);

#endif
