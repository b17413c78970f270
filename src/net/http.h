/* http.h -- one HTTP request and its answer, with a deadline and a bound on what is taken in. HTTP and HTTPS, through libcurl.
 *
 * libcurl (package libcurl4) is loaded when the first co_http is opened; the program starts without it. A co_http keeps its
 * connections from request to request. One thread at a time per co_http.
 *
 *     co_http *h;
 *     CO_TRY(co_http_open(&h));
 *     CO_TRY(co_http_do(h, &a, &(co_http_request){.url = "http://node1:2379/health", .most = 1 << 16}, &patience));
 *     CO_TRY(co_http_expect(&a, url));            // a status of 2xx
 *     co_free(a.body);
 */
#ifndef CO_NET_HTTP_H
#define CO_NET_HTTP_H

#include "net/net.h"

enum { CO_HTTP_HEADERS = 65536 }; /* bytes of headers in an answer */

typedef struct co_http_request {
    const char *method;         /* NULL: GET, or POST if there is a body */
    const char *url;            /* http:// or https:// */
    const char *const *headers; /* "Name: value", NULL at the end; NULL: none */
    const void *body;           /* NULL: none */
    size_t len;
    size_t most; /* largest body of the answer */
    bool direct; /* past the proxies that the environment names */
    const char *ca, *cert,
        *key; /* https: files in PEM; NULL: what the system trusts, no certificate of our own */
} co_http_request;

typedef struct co_http_answer {
    int status; /* any: 404 and 503 are answers */
    char *body; /* the caller's, co_free; NUL after it */
    size_t len;
} co_http_answer;

typedef struct co_http co_http;
/* CO_EINPUT: there is no libcurl here. */
co_err co_http_open(co_http **out);
void co_http_close(co_http *h); /* NULL is fine */
/* Redirects are not followed. CO_EPEER: refused, or ended before the answer was whole; CO_EIO: no such name, no route, no agreement on
 * TLS; CO_ETIMEOUT; CO_EFORMAT: not HTTP, or larger than `most`; CO_EINPUT: the url or a file named is no good; CO_ESTOP. */
co_err co_http_do(co_http *h, co_http_answer *out, const co_http_request *rq, const co_patience *p);
/* CO_OK for 2xx, else CO_EIO with the status and the beginning of the body. */
co_err co_http_expect(const co_http_answer *a, const char *url);

#endif
