/* role_int.h -- what this host does at the meeting point: it serves there, or it joins the host that does. */
#ifndef CO_ROSTER_NET_ROLE_INT_H
#define CO_ROSTER_NET_ROLE_INT_H

#include "net/net.h"
#include "roster/roster_int.h"

enum { ROLE_ADDRESSES = 8 }; /* of one endpoint, at most */

typedef struct role {
    bool serves, tls;
    int listener; /* if it serves */
    co_endpoint at;
    co_token token;
    char made[CO_TOKEN_TEXT]; /* the token, if it was made here */
    char also[512];           /* further addresses of the endpoint */
    char doubt[700];          /* why it may be the wrong host that serves; "": no doubt */
    bool from_code; /* a joiner: the endpoint comes from a join code, so somebody did listen there */
} role;

/* Takes where->listener. On success a serving role owns `listener`. */
co_err role_decide(role *out, const co_terms *terms, const co_meet *where);
/* Whether a host would join somebody else's roster and lacks the token. */
bool role_lacks_token(const co_terms *terms, const co_meet *where);
int64_t host_clock_ns(const co_meet *where); /* CLOCK_REALTIME plus what a test adds to it */
void host_own_name(char *out, size_t size, const co_meet *where); /* where->host, or the system's name */

/* ---- reach.c: from an endpoint to a connection that knows the token ---- */
typedef struct reached {
    co_conn *conn;
    char via[CO_HOST_NAME], from[CO_HOST_NAME]; /* the address that was reached, and ours */
} reached;
/* `talk` gets a line when it takes long. */
co_err reach_roster(reached *out, const role *to, co_tls *tls, const co_patience *patience,
                    void (*talk)(void *ctx, const char *line), void *ctx);

#endif
