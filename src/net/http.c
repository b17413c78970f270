/* http.c -- requests through libcurl's multi interface. It never blocks, so we keep the deadline and can give
 * up at any time. The one exception is the end of a transfer during a name lookup: see curl_pair_abandon.
 */
#include "net/http_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "net/times_int.h"

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

/* Content of an answer that goes to the sink. */
static size_t pass_on(struct intake *in, const char *bytes, size_t len)
{
    in->sink_err = in->rq->sink(in->rq->sink_ctx, &in->head, bytes, len);
    return in->sink_err ? 0 : len;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *ctx)
{
    struct intake *in = ctx;

    in->last_ns = co_now_ns();
    if (in->rq->sink && (in->head.status == 200 || in->head.status == 206))
        return pass_on(in, bytes, size * n);
    if (size * n > in->rq->most - in->body.len) {
        in->too_much = true;
        return 0;
    }
    co_str_addn(&in->body, bytes, size * n);
    return in->body.failed ? 0 : size * n;
}

static size_t take_header(char *bytes, size_t size, size_t n, void *ctx)
{
    struct intake *in = ctx;

    in->last_ns = co_now_ns();
    in->headers += size * n;
    in->too_much = in->too_much || in->headers > CO_HTTP_HEADERS;
    http_head_line(&in->head, bytes, size * n);
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
    if (rq->redirects > 0) {
        bool safe = strncasecmp(rq->url, "https:", 6) == 0;
        curl.easy_setopt(e, OPT_FOLLOWLOCATION, 1L);
        curl.easy_setopt(e, OPT_MAXREDIRS, (long)rq->redirects);
        curl.easy_setopt(e, OPT_REDIR_PROTOCOLS, (long)(safe ? PROTO_HTTPS : PROTO_HTTP_AND_S));
    }
    if (rq->direct)
        curl.easy_setopt(e, OPT_NOPROXY, "*");
    if (rq->insecure) {
        curl.easy_setopt(e, OPT_SSL_VERIFYPEER, 0L);
        curl.easy_setopt(e, OPT_SSL_VERIFYHOST, 0L);
    }
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

bool http_was_sent(const co_http *h)
{
    return has_passed(h, INFO_PRETRANSFER_TIME_T);
}

static const char *why_late(const co_http *h, const struct intake *in)
{
    if (in->rq->idle_ms && in->last_ns)
        return ": nothing has come for too long";
    if (http_was_sent(h))
        return " took the request but did not answer in time";
    return has_passed(h, INFO_NAMELOOKUP_TIME_T)
               ? ": no connection in time"
               : ": the name was not resolved in time (name servers do not answer)";
}

/* The deadline, or the end of the idle time if that comes first. */
static uint64_t wait_until(const struct intake *in, const co_patience *patience)
{
    uint64_t idle = (in->last_ns ? in->last_ns : in->begin_ns) + (uint64_t)in->rq->idle_ms * 1000000;

    return in->rq->idle_ms && idle < patience->until_ns ? idle : patience->until_ns;
}

/* Drives the transfer until it is done; *result is curl's code. */
static co_err turn(co_http *http, int *result, const struct intake *in, const co_patience *patience,
                   const char *shown)
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
        if (now >= wait_until(in, patience))
            break;
        uint64_t ms = (wait_until(in, patience) - now) / 1000000 + 1;
        curl.multi_poll(http->pair.multi, NULL, 0, ms < SLICE_MS ? (int)ms : SLICE_MS, NULL);
    }
    return co_fail(CO_ETIMEOUT, "%s%s", shown, why_late(http, in));
}

/* Takes ownership of headers. */
static void end_transfer(co_http *h, bool given_up, void *headers)
{
    if (given_up && !has_passed(h, INFO_NAMELOOKUP_TIME_T)) {
        /* curl may use it after the co_http is freed */
        curl.easy_setopt(h->pair.easy, OPT_ERRORBUFFER, NULL);
        curl_pair_abandon(&h->pair, headers);
        return;
    }
    curl.multi_remove_handle(h->pair.multi, h->pair.easy);
    curl.slist_free_all(headers);
}

co_err co_http_do(co_http *http, co_http_answer *out, const co_http_request *rq, const co_patience *patience)
{
    struct intake in = {.rq = rq, .begin_ns = co_now_ns(), .head = http_no_head};
    char shown[300];
    int result = 0;
    long status = 0;
    void *headers = header_list(rq);

    if (!headers)
        return co_fail(CO_ENOMEM, "out of memory for a request");
    http_show_url(shown, sizeof shown, rq->url);
    http->error[0] = '\0';
    set_up(http, rq, headers, &in);
    co_err err = curl.multi_add_handle(http->pair.multi, http->pair.easy) == 0
                     ? turn(http, &result, &in, patience, shown)
                     : co_fail(CO_EIO, "curl_multi_add_handle");
    end_transfer(http, err == CO_ETIMEOUT || err == CO_ESTOP, headers);
    if (!err && result != 0)
        err = http_explain(http, result, &in, shown);
    if (!err) {
        curl.easy_getinfo(http->pair.easy, INFO_RESPONSE_CODE, &status);
        co_str_addn(&in.body, "", 0); /* makes a buffer even for an empty body */
        size_t len = in.body.len;
        char *body = co_str_take(&in.body);
        if (body)
            *out = (co_http_answer){.status = (int)status, .body = body, .len = len, .head = in.head};
        else
            err = co_fail(CO_ENOMEM, "%s: out of memory for the answer", shown);
    }
    co_str_fini(&in.body);
    return err;
}
