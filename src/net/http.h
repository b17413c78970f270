/* http.h -- one HTTP or HTTPS request and its answer, through libcurl, with a deadline and a size limit.
 *
 * libcurl (package libcurl4) is loaded when the first co_http is opened; the program starts without it. A
 * co_http keeps its connections open between requests. One thread at a time per co_http.
 *
 *     co_http *h;
 *     co_http_request request = {.url = "http://node1:2379/health", .most = 1 << 16};
 *     CO_TRY(co_http_open(&h));
 *     CO_TRY(co_http_do(h, &a, &request, &patience));
 *     CO_TRY(co_http_expect(&a, request.url));    // a status of 2xx
 *     co_free(a.body);
 */
#ifndef CO_NET_HTTP_H
#define CO_NET_HTTP_H

#include "net/net.h"

enum { CO_HTTP_HEADERS = 65536 }; /* limit for the headers of an answer, in bytes */

/* What we read of the headers of an answer. Numbers are -1, texts "" where the server did not say. */
typedef struct co_http_head {
    int status;
    int64_t length;         /* of the body that follows: Content-Length */
    int64_t from, total;    /* Content-Range: the first byte of the part, the length of the whole */
    char etag[128];         /* with its quotes */
    char linked_sha256[65]; /* X-Linked-ETag of the Hugging Face hub, also of an answer that redirects */
    int64_t linked_size;    /* X-Linked-Size */
    int64_t retry_after_s;  /* Retry-After */
} co_http_head;

typedef struct co_http_request {
    const char *method;         /* NULL: GET, or POST if there is a body */
    const char *url;            /* http:// or https:// */
    const char *const *headers; /* "Name: value", NULL at the end; NULL: none */
    const void *body;           /* NULL: none */
    size_t len;
    size_t most;   /* limit for the answer's body, in bytes */
    bool direct;   /* ignore the proxies that the environment names */
    bool insecure; /* https: take any certificate; only if the user asked for that */
    /* https: PEM files. NULL: the system's authorities, and no client certificate. */
    const char *ca, *cert, *key;
    /* Up to so many redirects are followed, and from https only to https. 0: a redirect is an answer. */
    int redirects;
    /* If not NULL, the body of an answer 200 or 206 goes there, in pieces, and `most` does not limit it.
     * Anything but CO_OK ends the transfer with that error. Other answers are collected as usual. */
    co_err (*sink)(void *ctx, const co_http_head *head, const void *bytes, size_t len);
    void *sink_ctx;
    int idle_ms; /* CO_ETIMEOUT when nothing has come for so long; 0: only the deadline counts */
} co_http_request;

typedef struct co_http_answer {
    int status; /* any status: 404 and 503 are answers, too */
    char *body; /* the caller's (co_free); followed by a NUL */
    size_t len;
    co_http_head head; /* of the last answer, where redirects were followed */
} co_http_answer;

typedef struct co_http co_http;
/* CO_EINPUT: libcurl is not installed. */
co_err co_http_open(co_http **out);
void co_http_close(co_http *h); /* NULL is fine */
/* CO_EPEER: the server refused, or closed before the answer was complete. CO_EIO:
 * no such name, no route, or TLS failed. CO_ETIMEOUT: the deadline passed. CO_EFORMAT: not HTTP, larger
 * than `most`, or redirected too often. CO_EINPUT: the url or a named file is wrong. CO_ESTOP: `give_up` was
 * set. */
co_err co_http_do(co_http *h, co_http_answer *out, const co_http_request *rq, const co_patience *p);
/* "Authorization: Basic ..."; NULL: no memory. Secrets are overwritten before they are freed (NULL is
 * fine). */
char *co_http_basic(const char *user, const char *password);
void co_http_wipe(char *secret);
/* CO_OK for 2xx, else CO_EIO with the status and the beginning of the body. */
co_err co_http_expect(const co_http_answer *a, const char *url);

#endif
