/* http_int.h -- what the files of the HTTP client share. */
#ifndef CO_NET_HTTP_INT_H
#define CO_NET_HTTP_INT_H

#include "base/str.h"
#include "net/curl_int.h"

struct co_http {
    curl_pair pair;
    char error[ERROR_SIZE];
};

/* An answer as it comes in. */
struct intake {
    const co_http_request *rq;
    co_str body;
    co_http_head head;
    size_t headers; /* bytes of them so far */
    bool too_much;
    co_err sink_err;
    uint64_t begin_ns, last_ns; /* the start; when something came last, 0: nothing yet */
};

/* http_head.c */
extern const co_http_head http_no_head;
/* Takes a line of headers, as it came: with its line end, or without one. A status line begins a new head. */
void http_head_line(co_http_head *head, const char *line, size_t len);

/* http.c */
bool http_was_sent(const co_http *h);

/* http_say.c. The url without user, password and query, which may be secret. */
void http_show_url(char *out, size_t size, const char *url);
co_err http_explain(const co_http *http, int code, const struct intake *in, const char *shown);

#endif
