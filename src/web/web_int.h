/* web_int.h -- what the files of this room share: who may ask (guard.c), what is answered (answers.c), and
 * the runs that are open (runs.c). */
#ifndef CO_WEB_WEB_INT_H
#define CO_WEB_WEB_INT_H

#include <pthread.h>
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
    const char *by, *from, *to;       /* ... ?by=, ?from=, ?to= */
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

enum { POINTS_SHOWN = 1500 }; /* of a series */

/* runs.c: the runs below the root, and readers of those that are being looked at. Any thread may call. */
enum { CONNECTIONS = 64, OPEN_MOST = CONNECTIONS + 16 };
typedef struct open_run {
    char *dir;
    co_run *run; /* `lock` guards it */
    pthread_mutex_t lock;
    int users; /* that have or wait for it; this and the rest: guarded by the lock of `runs` */
    double used_s;
} open_run;
typedef struct runs {
    char *root;
    bool ready; /* the locks are there */
    pthread_mutex_t lock;
    co_run_list list;
    double listed_s;
    bool listing;                                      /* somebody is looking for runs */
    co_err (*find)(co_run_list *out, const char *dir); /* co_runs_find; a test has its own */
    open_run open[OPEN_MOST];
} runs;
co_err runs_open(runs *r, const char *root);
void runs_close(runs *r);
/* Every run below the root, in the order of the names. */
void runs_each(runs *r, void (*fn)(void *ctx, const char *dir, const char *name), void *ctx);
char *runs_dir(runs *r, const char *name); /* the folder of that run, the caller's; NULL: no such run */
/* The run of this name, with what was written since; the caller has it for himself until runs_put. NULL: no
 * such run. */
open_run *runs_take(runs *r, const char *name);
void runs_put(runs *r, open_run *o);

/* answers.c: fills in the answer to a request that may be answered. */
void answer_make(answer *out, runs *r, const ask *a);

#endif
