/* ask.c -- one request for a file or its rest.
 *
 *   part is empty              ->  200: the file from its beginning
 *   part has n bytes, Range n- ->  206: goes on behind them, if the answer begins at n
 *                                  200: the server knows no ranges, or has another file now: starts anew
 *                                  416: n is the whole length: done. Otherwise starts anew
 *
 * A range is asked for with If-Range if the ETag of our bytes is known, so bytes of two versions never mix.
 * Without an ETag we go on only if a checksum will tell, or start anew.
 */
#include "fetch/ask_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { REDIRECTS = 10, ERROR_MOST = 1 << 16, IDLE_MS = 60000, TELL_MS = 250 };
static const uint64_t MOST = (uint64_t)1 << 40;

static void tell(download *d, bool now)
{
    uint64_t ns = co_now_ns();

    if (!d->job->tell || (!now && ns - d->told_ns < (uint64_t)TELL_MS * 1000000))
        return;
    d->told_ns = ns;
    d->job->tell(d->job->ctx, d->job->path, d->part.len, d->total);
}

static co_err wrong(download *d, co_err err)
{
    d->final = true;
    return err;
}

static co_err check_lengths(download *d, uint64_t size)
{
    const co_fetch_job *job = d->job;
    uint64_t most = job->most ? job->most : MOST;

    if (job->size && size && size != job->size)
        return co_fail(CO_EFORMAT, "it has %llu bytes there, it should have %llu", (unsigned long long)size,
                       (unsigned long long)job->size);
    if (size > most)
        return co_fail(CO_EFORMAT, "it has %llu bytes there; at most %llu are taken",
                       (unsigned long long)size, (unsigned long long)most);
    return CO_OK;
}

static void keep_linked_sum(download *d, const co_http_head *head)
{
    if (d->job->linked_sum && *head->linked_sha256 && !d->job->sha256)
        memcpy(d->want.sha256, head->linked_sha256, sizeof d->want.sha256);
}

/* The first bytes of an answer: is it what was asked for? */
static co_err begin(download *d, const co_http_head *head)
{
    d->begun = true;
    keep_linked_sum(d, head);
    if (head->status == 206 && (head->from < 0 || (uint64_t)head->from != d->part.len))
        return wrong(d, co_fail(CO_EFORMAT, "it answers with bytes from %lld on, asked for those from %llu on",
                                (long long)head->from, (unsigned long long)d->part.len));
    if (head->status == 200 && d->part.len)
        CO_TRY(wrong(d, partial_restart(&d->part)));
    int64_t size = head->status == 206 ? head->total : head->length;
    d->total = size > 0 ? (uint64_t)size : 0;
    co_err err = check_lengths(d, d->total);
    if (!err)
        err = partial_needs(&d->part, (d->total > d->part.len ? d->total - d->part.len : 0) + d->job->room);
    if (!err)
        err = partial_came_from(&d->part, d->url, head->etag);
    d->final = err != CO_OK;
    return err;
}

static co_err take(void *ctx, const co_http_head *head, const void *bytes, size_t len)
{
    download *d = ctx;

    if (!d->begun)
        CO_TRY(begin(d, head));
    uint64_t most = d->total ? d->total : d->job->size ? d->job->size : d->job->most ? d->job->most : MOST;
    if (d->part.len + len > most)
        return wrong(d, co_fail(CO_EFORMAT, "more than %llu bytes come", (unsigned long long)most));
    co_err err = partial_add(&d->part, bytes, len);
    tell(d, false);
    return err ? wrong(d, err) : CO_OK;
}

/* May the bytes at hand be continued from this address? */
static bool may_continue(const download *d)
{
    if (d->part.len == 0)
        return false;
    if (strcmp(d->part.url, d->url) == 0 && *d->part.etag)
        return true;
    return *d->want.md5 || *d->want.sha256;
}

static co_err answered(download *d, const co_http_answer *a)
{
    if (a->status == 200 || a->status == 206) {
        if (!d->begun)
            CO_TRY(begin(d, &a->head)); /* an empty body */
        tell(d, true);
        return d->total && d->part.len != d->total
                   ? co_fail(CO_EPEER, "%s: %llu of %llu bytes came", d->url, (unsigned long long)d->part.len,
                             (unsigned long long)d->total)
                   : CO_OK;
    }
    keep_linked_sum(d, &a->head);
    if (a->status == 416 && d->part.len) {
        if (a->head.total >= 0 && (uint64_t)a->head.total == d->part.len)
            return check_lengths(d, d->part.len);
        CO_TRY(partial_restart(&d->part));
        return co_fail(CO_EPEER, "%s: the file there is shorter than what we have of it", d->url);
    }
    d->final = a->status < 500 && a->status != 408 && a->status != 429;
    return co_http_expect(a, d->url);
}

co_err ask(download *d)
{
    char range[64], if_range[FETCH_ETAG + 16];
    const char *headers[3] = {0};
    co_patience forever = {.until_ns = UINT64_MAX};
    co_http_answer a = {0};

    d->begun = d->final = false;
    if (d->part.len && !may_continue(d))
        CO_TRY(partial_restart(&d->part));
    if (d->part.len) {
        snprintf(range, sizeof range, "Range: bytes=%llu-", (unsigned long long)d->part.len);
        headers[0] = range;
        if (*d->part.etag && strcmp(d->part.url, d->url) == 0) {
            snprintf(if_range, sizeof if_range, "If-Range: %s", d->part.etag);
            headers[1] = if_range;
        }
    }
    co_http_request rq = {.url = d->url,
                          .headers = headers,
                          .most = ERROR_MOST,
                          .redirects = REDIRECTS,
                          .sink = take,
                          .sink_ctx = d,
                          .idle_ms = d->job->idle_ms ? d->job->idle_ms : IDLE_MS};
    co_err err = co_http_do(d->http, &a, &rq, &forever);
    if (err == CO_EINPUT || err == CO_EFORMAT)
        d->final = true;
    if (!err)
        err = answered(d, &a);
    co_free(a.body);
    return err;
}

void ask_sum(download *d)
{
    char url[FETCH_URL];
    co_http_answer a = {0};
    co_patience patience = co_patience_s((d->job->idle_ms ? d->job->idle_ms : IDLE_MS) / 1000.0);

    if (!d->job->sum_end || *d->want.md5 || *d->want.sha256 ||
        snprintf(url, sizeof url, "%s%s", d->url, d->job->sum_end) >= (int)sizeof url)
        return;
    co_http_request rq = {.url = url, .most = ERROR_MOST, .redirects = REDIRECTS};
    if (co_http_do(d->http, &a, &rq, &patience) == CO_OK && a.status == 200)
        sums_parse_md5(&d->want, a.body, a.len);
    co_free(a.body);
    co_errclear();
}
