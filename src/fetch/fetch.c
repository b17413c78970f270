/* fetch.c -- a file from the first of several addresses that has it, with attempts, checks and the final
 * rename. */
#include "fetch/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "fetch/ask_int.h"

enum { RETRY_MS = 1000, RETRY_MOST_MS = 30000 };

static void pause_before(const co_fetch_job *job, int attempt)
{
    int ms = job->retry_ms ? job->retry_ms : RETRY_MS;

    for (int i = 1; i < attempt && ms < RETRY_MOST_MS; i++)
        ms *= 2;
    ms = ms < RETRY_MOST_MS ? ms : RETRY_MOST_MS;
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Attempts at one address, until the part is whole. Attempts that bring bytes are not counted. */
static co_err attempts(download *d)
{
    uint64_t furthest = d->part.len;

    for (int useless = 0;;) {
        co_err err = ask(d);
        if (!err || d->final)
            return err;
        useless = d->part.len > furthest ? 1 : useless + 1;
        furthest = d->part.len > furthest ? d->part.len : furthest;
        if (useless > d->job->retries)
            return err;
        pause_before(d->job, useless);
    }
}

static co_err check_whole(co_fetch_facts *facts, download *d)
{
    if (d->job->size && d->part.len != d->job->size)
        return co_fail(CO_EFORMAT, "it has %llu bytes, it should have %llu", (unsigned long long)d->part.len,
                       (unsigned long long)d->job->size);
    return sums_check(facts, &d->want, d->part.path);
}

/* A part that was continued may hold bytes of another version: then the whole file is fetched once more. */
static co_err from_address(co_fetch_facts *facts, download *d)
{
    ask_sum(d);
    for (bool again = false;; again = true) {
        uint64_t kept = d->part.len;
        co_err err = attempts(d);
        if (err)
            return err;
        facts->kept = kept < d->part.len || kept == d->total ? kept : 0;
        err = check_whole(facts, d);
        if (err != CO_EFORMAT)
            return err;
        CO_TRY(partial_restart(&d->part));
        if (again || kept == 0)
            return co_fail(CO_EFORMAT, "%s: what came is not the file: %s; it was thrown away", d->url,
                           co_errmsg());
    }
}

static co_err from_any(co_fetch_facts *facts, download *d)
{
    co_str failures = {0};
    co_err err = CO_EINPUT;

    for (int i = 0; d->job->urls[i]; i++) {
        d->url = d->job->urls[i];
        err = from_address(facts, d);
        if (!err) {
            facts->url = d->url;
            break;
        }
        const char *why = co_errmsg();
        co_str_addf(&failures, "%s%s%s%s", i ? "; " : "", strstr(why, "://") ? "" : d->url,
                    strstr(why, "://") ? "" : ": ", why);
        if (err == CO_EIO && d->final && d->begun)
            break; /* the disk: other addresses do not help */
    }
    if (err)
        co_fail(err, "%s", co_str_text(&failures));
    co_str_fini(&failures);
    return err;
}

static void known_sums(sums *want, const co_fetch_job *job)
{
    snprintf(want->md5, sizeof want->md5, "%s", job->md5 ? job->md5 : "");
    snprintf(want->sha256, sizeof want->sha256, "%s", job->sha256 ? job->sha256 : "");
}

/* Is the file there, whole as far as we can tell? */
static bool is_there(co_fetch_facts *facts, const co_fetch_job *job)
{
    struct stat st;
    sums want;

    known_sums(&want, job);
    if (job->anew || stat(job->path, &st) != 0 || !S_ISREG(st.st_mode) ||
        (job->size && (uint64_t)st.st_size != job->size) || sums_check(facts, &want, job->path) != CO_OK)
        return false;
    facts->bytes = (uint64_t)st.st_size;
    facts->was_there = true;
    return true;
}

static co_err run(co_fetch_facts *facts, download *d)
{
    CO_TRY(partial_open(&d->part, d->job->path, d->job->anew));
    co_err err = from_any(facts, d);
    if (!err) {
        facts->bytes = d->part.len;
        err = partial_finish(&d->part, d->job->path);
    } else if (d->part.len == 0) {
        partial_discard(&d->part); /* nothing to continue */
    }
    partial_close(&d->part);
    return err;
}

co_err co_fetch(co_fetch_facts *out, const co_fetch_job *job)
{
    co_fetch_facts facts = {0};
    download d = {.job = job, .part = {.fd = -1}};

    if (is_there(&facts, job)) {
        *out = facts;
        return CO_OK;
    }
    co_errclear();
    facts = (co_fetch_facts){0};
    known_sums(&d.want, job);
    CO_TRY(co_http_open(&d.http));
    co_err err = run(&facts, &d);
    co_http_close(d.http);
    if (!err)
        *out = facts;
    return err;
}
