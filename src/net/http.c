/* http.c -- requests through libcurl's multi interface. It never blocks, so we keep the deadline and can give
 * up at any time. The one exception is the end of a transfer during a name lookup: see curl_pair_abandon.
 */
#include "net/curl_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "net/times_int.h"

struct co_http {
    curl_pair pair;
    char error[ERROR_SIZE];
};

co_err co_http_open(co_http **out)
{
    CO_TRY(curl_load());
    co_http *h = co_zalloc(sizeof *h);
    if (!h)
        return CO_ENOMEM;
    co_err err = curl_pair_open(&h->pair);
    if (err) {
        co_free(h);
        return err;
    }
    *out = h;
    return CO_OK;
}

void co_http_close(co_http *h)
{
    if (!h)
        return;
    curl_pair_close(&h->pair);
    co_free(h);
}

/* The url without the parts that may be secret: user, password, query. */
static void show_url(char *out, size_t size, const char *url)
{
    const char *host = strstr(url, "://");

    host = host ? host + 3 : url;
    size_t n = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', n);
    const char *from = at ? at + 1 : host;
    snprintf(out, size, "%.*s%.*s", (int)(host - url), url, (int)strcspn(from, "?#"), from);
}

struct intake {
    co_str body;
    size_t most, headers;
    bool too_much;
};

static size_t take_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct intake *in = ctx;

    if (size * n > in->most - in->body.len) {
        in->too_much = true;
        return 0;
    }
    co_str_addn(&in->body, bytes, size * n);
    return in->body.failed ? 0 : size * n;
}

static size_t take_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct intake *in = ctx;

    in->headers += size * n;
    in->too_much = in->too_much || in->headers > CO_HTTP_HEADERS;
    return in->too_much ? 0 : size * n;
}

static void *header_list(const co_http_request *rq)
{
    /* do not wait for the server's permission to send the body */
    void *list = curl.slist_append(NULL, "Expect:");

    for (const char *const *at = rq->headers; list && at && *at; at++) {
        void *longer = curl.slist_append(list, *at);
        if (!longer)
            curl.slist_free_all(list);
        list = longer;
    }
    return list;
}

static void set_up(co_http *http, const co_http_request *rq, void *headers, struct intake *in)
{
    void *e = http->pair.easy;

    curl.easy_reset(e); /* keeps the connections open */
    curl.easy_setopt(e, OPT_URL, rq->url);
    curl.easy_setopt(e, OPT_PROTOCOLS, (long)PROTO_HTTP_AND_S);
    curl.easy_setopt(e, OPT_NOSIGNAL, 1L);
    curl.easy_setopt(e, OPT_USERAGENT, "cohort");
    curl.easy_setopt(e, OPT_ERRORBUFFER, http->error);
    curl.easy_setopt(e, OPT_HTTPHEADER, headers);
    curl.easy_setopt(e, OPT_WRITEFUNCTION, take_body);
    curl.easy_setopt(e, OPT_WRITEDATA, in);
    curl.easy_setopt(e, OPT_HEADERFUNCTION, take_header);
    curl.easy_setopt(e, OPT_HEADERDATA, in);
    if (rq->body) {
        curl.easy_setopt(e, OPT_POSTFIELDSIZE_LARGE, (int64_t)rq->len);
        curl.easy_setopt(e, OPT_POSTFIELDS, rq->body);
    }
    if (rq->method && strcmp(rq->method, "HEAD") == 0)
        curl.easy_setopt(e, OPT_NOBODY, 1L);
    else if (rq->method)
        curl.easy_setopt(e, OPT_CUSTOMREQUEST, rq->method);
    if (rq->direct)
        curl.easy_setopt(e, OPT_NOPROXY, "*");
    if (rq->ca)
        curl.easy_setopt(e, OPT_CAINFO, rq->ca);
    if (rq->cert)
        curl.easy_setopt(e, OPT_SSLCERT, rq->cert);
    if (rq->key)
        curl.easy_setopt(e, OPT_SSLKEY, rq->key);
}

/* Has the transfer reached this stage? curl records the time of each stage in microseconds, at least 1. */
static bool has_passed(const co_http *h, int stage)
{
    int64_t after_us = 0;

    curl.easy_getinfo(h->pair.easy, stage, &after_us);
    return after_us > 0;
}

static bool was_sent(const co_http *h)
{
    return has_passed(h, INFO_PRETRANSFER_TIME_T);
}

static const char *why_late(const co_http *h)
{
    if (was_sent(h))
        return " took the request but did not answer in time";
    return has_passed(h, INFO_NAMELOOKUP_TIME_T)
               ? ": no connection in time"
               : ": the name was not resolved in time (name servers do not answer)";
}

/* Drives the transfer until it is done; *result is curl's code. */
static co_err turn(co_http *http, int *result, const co_patience *patience, const char *shown)
{
    int running = 1, left;

    for (;;) {
        if (curl.multi_perform(http->pair.multi, &running) != 0)
            return co_fail(CO_EIO, "%s: curl_multi_perform fails", shown);
        for (struct curl_message *message; (message = curl.multi_info_read(http->pair.multi, &left));)
            if (message->what == 1) {
                *result = message->data.result;
                return CO_OK;
            }
        uint64_t now = co_now_ns();
        if (patience->give_up && atomic_load(patience->give_up))
            return co_fail(CO_ESTOP, "%s: asked to stop", shown);
        if (now >= patience->until_ns)
            break;
        uint64_t ms = (patience->until_ns - now) / 1000000 + 1;
        curl.multi_poll(http->pair.multi, NULL, 0, ms < SLICE_MS ? (int)ms : SLICE_MS, NULL);
    }
    return co_fail(CO_ETIMEOUT, "%s%s", shown, why_late(http));
}

/* Takes ownership of headers. */
static void end_transfer(co_http *h, bool given_up, void *headers)
{
    if (given_up && !has_passed(h, INFO_NAMELOOKUP_TIME_T)) {
        curl.easy_setopt(h->pair.easy, OPT_ERRORBUFFER, NULL); /* curl may use it after the co_http is freed */
        curl_pair_abandon(&h->pair, headers);
        return;
    }
    curl.multi_remove_handle(h->pair.multi, h->pair.easy);
    curl.slist_free_all(headers);
}

static co_err explain(const co_http *http, int code, const struct intake *in, const char *shown)
{
    const char *what = *http->error ? http->error : curl.easy_strerror(code);

    if (in->body.failed)
        return co_fail(CO_ENOMEM, "%s: out of memory for the answer", shown);
    if (in->too_much)
        return co_fail(CO_EFORMAT, "%s: the answer is larger than the %zu bytes allowed", shown,
                       in->headers > CO_HTTP_HEADERS ? (size_t)CO_HTTP_HEADERS : in->most);
    if (code == E_UNSUPPORTED_PROTOCOL && was_sent(http)) /* "HTTP/0.9" */
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

co_err co_http_do(co_http *http, co_http_answer *out, const co_http_request *rq, const co_patience *patience)
{
    struct intake in = {.most = rq->most};
    char shown[300];
    int result = 0;
    long status = 0;
    void *headers = header_list(rq);

    if (!headers)
        return co_fail(CO_ENOMEM, "out of memory for a request");
    show_url(shown, sizeof shown, rq->url);
    http->error[0] = '\0';
    set_up(http, rq, headers, &in);
    co_err err = curl.multi_add_handle(http->pair.multi, http->pair.easy) == 0
                     ? turn(http, &result, patience, shown)
                     : co_fail(CO_EIO, "curl_multi_add_handle");
    end_transfer(http, err == CO_ETIMEOUT || err == CO_ESTOP, headers);
    if (!err && result != 0)
        err = explain(http, result, &in, shown);
    if (!err) {
        curl.easy_getinfo(http->pair.easy, INFO_RESPONSE_CODE, &status);
        co_str_addn(&in.body, "", 0); /* makes a buffer even for an empty body */
        size_t len = in.body.len;
        char *body = co_str_take(&in.body);
        if (body)
            *out = (co_http_answer){.status = (int)status, .body = body, .len = len};
        else
            err = co_fail(CO_ENOMEM, "%s: out of memory for the answer", shown);
    }
    co_str_fini(&in.body);
    return err;
}

co_err co_http_expect(const co_http_answer *a, const char *url)
{
    char shown[300], text[201];

    if (a->status >= 200 && a->status < 300)
        return CO_OK;
    show_url(shown, sizeof shown, url);
    snprintf(text, sizeof text, "%s", a->body);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            *at = ' ';
    return co_fail(CO_EIO, "%s answers with status %d%s%s", shown, a->status, *text ? ": " : "", text);
}
