/* http_say.c -- what went wrong with a request, as an error code and a sentence. */
#include "net/http_int.h"

#include <stdio.h>
#include <string.h>

/* The url without the parts that may be secret: user, password, query. */
void http_show_url(char *out, size_t size, const char *url)
{
    const char *host = strstr(url, "://");

    host = host ? host + 3 : url;
    size_t n = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', n);
    const char *from = at ? at + 1 : host;
    snprintf(out, size, "%.*s%.*s", (int)(host - url), url, (int)strcspn(from, "?#"), from);
}

co_err http_explain(const co_http *http, int code, const struct intake *in, const char *shown)
{
    const char *what = *http->error ? http->error : curl.easy_strerror(code);

    if (in->sink_err)
        return in->sink_err; /* the sink has said why */
    if (in->body.failed)
        return co_fail(CO_ENOMEM, "%s: out of memory for the answer", shown);
    if (in->too_much)
        return co_fail(CO_EFORMAT, "%s: the answer is larger than the %zu bytes allowed", shown,
                       in->headers > CO_HTTP_HEADERS ? (size_t)CO_HTTP_HEADERS : in->rq->most);
    if (code == E_UNSUPPORTED_PROTOCOL && http_was_sent(http)) /* "HTTP/0.9" */
        code = E_WEIRD_SERVER_REPLY;
    switch (code) {
    case E_UNSUPPORTED_PROTOCOL:
    case E_URL_MALFORMAT:
    case E_SSL_CERTPROBLEM:
    case E_SSL_CACERT_BADFILE:
        return co_fail(CO_EINPUT, "%s: %s", shown, what);
    case E_WEIRD_SERVER_REPLY:
    case E_BAD_CONTENT_ENCODING:
        return co_fail(CO_EFORMAT, "%s: the server does not speak HTTP (%s)", shown, what);
    case E_TOO_MANY_REDIRECTS:
        return co_fail(CO_EFORMAT, "%s redirects in a circle: more than %d times", shown, in->rq->redirects);
    case E_COULDNT_CONNECT:
    case E_PARTIAL_FILE:
    case E_GOT_NOTHING:
    case E_SEND_ERROR:
    case E_RECV_ERROR:
        return co_fail(CO_EPEER, "%s: %s", shown, what);
    default:
        return co_fail(CO_EIO, "%s: %s", shown, what);
    }
}

co_err co_http_expect(const co_http_answer *a, const char *url)
{
    char shown[300], text[201];

    if (a->status >= 200 && a->status < 300)
        return CO_OK;
    http_show_url(shown, sizeof shown, url);
    snprintf(text, sizeof text, "%s", a->body);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = ' ';
    return co_fail(CO_EIO, "%s answers with status %d%s%s", shown, a->status, *text ? ": " : "", text);
}
