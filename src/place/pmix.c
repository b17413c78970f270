/* pmix.c -- loads libpmix.so.2 when it is needed, and passes the card from the first process to the others.
 *
 * We do not free the values that PMIx returns: they are small, and the way to free them differs between its
 * versions. Only the fence waits for other processes. It has no deadline of its own (the server of Open MPI 4
 * ignores pmix.timeout), so we start it without blocking and wait for its callback. A fence that is not over
 * in time is abandoned, and the memory that it may still use is never freed.
 */
#include "place/pmix_abi.h"
#include "place/place_int.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/library.h"

struct pmix {
    void *library;
    abi_proc me;
    int (*init)(abi_proc *, abi_info *, size_t);
    int (*finalize)(const abi_info *, size_t);
    int (*put)(uint8_t scope, const char *key, abi_value *);
    int (*commit)(void);
    int (*fence)(const abi_proc *, size_t, const abi_info *, size_t, void (*over)(int, void *), void *);
    int (*get)(const abi_proc *, const char *key, const abi_info *, size_t, abi_value **);
    const char *(*text)(int status);

    /* the fence: PMIx may read these, and call us back, until the fence is over */
    abi_proc all;
    abi_info collect;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool open;
    int status;
};

static bool load(pmix *x)
{
    const co_symbol calls[] = {{"PMIx_Init", &x->init},        {"PMIx_Finalize", &x->finalize},
                               {"PMIx_Put", &x->put},          {"PMIx_Commit", &x->commit},
                               {"PMIx_Fence_nb", &x->fence},   {"PMIx_Get", &x->get},
                               {"PMIx_Error_string", &x->text}};

    x->library = co_library_load("libpmix.so.2", CO_LIBRARY_GLOBAL, calls, CO_COUNT(calls), NULL);
    return x->library != NULL;
}

co_err pmix_open(pmix **out)
{
    pmix *x = co_zalloc(sizeof *x);
    pthread_condattr_t how;
    int status = 0;

    if (!x)
        return CO_ENOMEM;
    if (!load(x) || (status = x->init(&x->me, NULL, 0)) != 0) {
        const char *why = status ? x->text(status) : "the library libpmix.so.2 is not on this host";
        co_free(x);
        return co_fail(CO_EINPUT, "%s", why);
    }
    pthread_mutex_init(&x->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&x->ended, &how);
    pthread_condattr_destroy(&how);
    *out = x;
    return CO_OK;
}

/* The library stays loaded, because it has threads and handlers of its own. */
void pmix_close(pmix *x)
{
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    bool open = x->open;
    pthread_mutex_unlock(&x->lock);
    if (open) /* the fence may still call us back, and a server that does not answer gets no more calls */
        return;
    x->finalize(NULL, 0);
    pthread_mutex_destroy(&x->lock);
    pthread_cond_destroy(&x->ended);
    co_free(x);
}

int pmix_size(const pmix *x)
{
    abi_proc all = x->me;
    abi_value *v = NULL;

    all.rank = (uint32_t)RANK_WILDCARD;
    if (x->get(&all, "pmix.job.size", NULL, 0, &v) != 0 || !v || v->type != TYPE_UINT32)
        return -1;
    return v->data.uint32 <= 1 << 20 ? (int)v->data.uint32 : -1;
}

bool pmix_hosts(const pmix *x, int *host, int n)
{
    const char *name[CO_MAX_HOSTS];
    abi_proc who = x->me;

    for (int r = 0; r < n; r++) {
        abi_value *v = NULL;
        who.rank = (uint32_t)r;
        if (n > CO_MAX_HOSTS || x->get(&who, "pmix.hname", NULL, 0, &v) != 0 || !v ||
            v->type != TYPE_STRING || !v->data.string)
            return false;
        name[r] = v->data.string;
        for (host[r] = 0; strcmp(name[host[r]], name[r]) != 0;) /* a host's number is its first rank */
            host[r]++;
    }
    return true;
}

static void fence_over(int status, void *arg)
{
    pmix *x = arg;

    pthread_mutex_lock(&x->lock);
    x->status = status;
    x->open = false;
    pthread_cond_signal(&x->ended);
    pthread_mutex_unlock(&x->lock);
}

/* Waits until every process has called it. Then each can get what the others put before. */
static co_err fence(pmix *x, waiting *w)
{
    int ms = 1;

    x->all = x->me;
    x->all.rank = (uint32_t)RANK_WILDCARD;
    x->collect = (abi_info){.key = "pmix.collect", .value = {.type = TYPE_BOOL, .data.flag = true}};
    x->open = true;
    int status = x->fence(&x->all, 1, &x->collect, 1, fence_over, x);
    if (status != 0)
        fence_over(status == OVER_AT_ONCE ? 0 : status, x);
    pthread_mutex_lock(&x->lock);
    while (x->open && (ms = waiting_turn(w)) > 0) {
        uint64_t at = co_now_ns() + (uint64_t)ms * 1000000;
        struct timespec ts = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
        pthread_cond_timedwait(&x->ended, &x->lock, &ts);
    }
    bool open = x->open;
    status = x->status;
    pthread_mutex_unlock(&x->lock);
    if (open)
        return waiting_over(w);
    return status == 0 ? CO_OK : co_fail(CO_EFAIL, "PMIx: %s", x->text(status));
}

co_err pmix_pass(pmix *x, char text[CARD_TEXT], waiting *w)
{
    abi_value mine = {.type = TYPE_STRING, .data.string = text}, *v = NULL;
    abi_proc first = x->me;
    bool gives = w->place->seat == 0;
    int status = 0;

    first.rank = 0;
    if (gives && (status = x->put(SCOPE_GLOBAL, "cohort.card", &mine)) == 0)
        status = x->commit();
    if (status == 0) {
        CO_TRY(fence(x, w));
        status = gives ? 0 : x->get(&first, "cohort.card", NULL, 0, &v);
    }
    if (status)
        return co_fail(CO_EFAIL, "PMIx: %s", x->text(status));
    if (gives)
        return CO_OK;
    if (!v || v->type != TYPE_STRING || !v->data.string || strlen(v->data.string) >= CARD_TEXT)
        return co_fail(CO_EFORMAT, "PMIx gives no card from the first process");
    snprintf(text, CARD_TEXT, "%s", v->data.string);
    return CO_OK;
}
