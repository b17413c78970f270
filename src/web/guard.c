/* guard.c -- who may ask the board.
 *
 * Any page that a browser shows can send requests to this machine. So a request must name this machine as its
 * Host (else a foreign name was made to point here), and if it says where it comes from, that must be this
 * board. On an address that others reach, it must also bring the token. */
#include "web/web_int.h"

#include <stdio.h>
#include <string.h>

static bool is_local_name(const char *host, int port)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    char text[64];

    for (size_t i = 0; i < CO_COUNT(names); i++) {
        snprintf(text, sizeof text, "%s:%d", names[i], port);
        if (strcmp(host, text) == 0)
            return true;
    }
    return false;
}

/* "http://HOST" with the request's own Host. */
static bool is_own_origin(const char *origin, const char *host)
{
    return host && strncmp(origin, "http://", 7) == 0 && strcmp(origin + 7, host) == 0;
}

/* In a time that does not depend on where they differ. */
static bool same_token(const char *given, const char *token)
{
    size_t n = strlen(token);
    unsigned differ = 0;

    if (!given || strlen(given) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned)(given[i] ^ token[i]);
    return differ == 0;
}

int guard_check(const guard *g, const ask *a, const char **why)
{
    *why = "only GET and HEAD are answered";
    if (strcmp(a->method, "GET") != 0 && strcmp(a->method, "HEAD") != 0)
        return 405;
    *why = "this name is not the board's";
    if (g->loopback && (!a->host || !is_local_name(a->host, g->port)))
        return 403;
    *why = "requests of other pages are refused";
    if (a->origin && !is_own_origin(a->origin, a->host))
        return 403;
    if (a->site && strcmp(a->site, "same-origin") != 0 && strcmp(a->site, "none") != 0)
        return 403;
    *why = "the token is missing or wrong: open the address that `cohort board` printed";
    if (*g->token && !same_token(a->token, g->token) && !same_token(a->cookie, g->token))
        return 401;
    return 0;
}
