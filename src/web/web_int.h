/* web_int.h -- what the files of this room share: who may ask (guard.c), what is answered (answers.c), and
 * the runs that are open (runs.c). */
#ifndef CO_WEB_WEB_INT_H
#define CO_WEB_WEB_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "track/run_read.h"
#include "web/web.h"

/* One request, as far as we look at it. Texts are the server's; NULL: absent. */
typedef struct ask {
    const char *method, *path;
    const char *host, *origin, *site; /* headers Host, Origin, Sec-Fetch-Site */
    const char *cookie;               /* the token's cookie */
    const char *token, *run, *names;  /* of the query: ?token=, ?run=, ?names= */
} ask;

typedef struct answer {
    int status;
    const char *type; /* Content-Type */
    bool is_book;     /* a page of its own: other rules for what it may load */
    co_str body;
} answer;

/* guard.c: 0 if the request may be answered, else the status of the refusal, with its reason in *why.
 * `loopback`: only names of this machine are taken as Host. */
typedef struct guard {
    bool loopback;
    int port;
    char token[64]; /* "": none is needed */
} guard;
int guard_check(const guard *g, const ask *a, const char **why);

/* runs.c: the runs below the root, and readers of those that are being looked at. */
typedef struct open_run {
    char *dir;
    co_run *run;
    double used_s;
} open_run;
enum { OPEN_MOST = 12 };
typedef struct runs {
    char *root;
    co_run_list list;
    double listed_s;
    open_run open[OPEN_MOST];
} runs;
co_err runs_open(runs *r, const char *root);
void runs_close(runs *r);
co_err runs_list(runs *r); /* again, if the list is old */
const char *runs_name(const runs *r, size_t i);
/* The reader of the run of this name, with what was written since; NULL: there is no such run. */
co_run *runs_get(runs *r, const char *name);

/* answers.c: fills in the answer to a request that may be answered. */
void answer_make(answer *out, runs *r, const ask *a);

#endif
