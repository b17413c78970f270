/* ask_int.h -- one download in progress, and one request of it. */
#ifndef CO_FETCH_ASK_INT_H
#define CO_FETCH_ASK_INT_H

#include "fetch/fetch_int.h"
#include "net/http.h"

typedef struct download {
    const co_fetch_job *job;
    co_http *http;
    partial part;
    sums want;
    const char *url;  /* of this attempt */
    uint64_t total;   /* length of the whole file; 0: not known */
    bool begun;       /* this answer's head was checked */
    bool final;       /* another attempt at this address would fail the same way */
    uint64_t told_ns; /* when progress was told last */
} download;

/* Asks d->url for the bytes that the part lacks. CO_OK: the part is whole, as far as lengths say. */
co_err ask(download *d);
/* Fetches d->url + job->sum_end and keeps the MD5. A missing file is no error. */
void ask_sum(download *d);

#endif
