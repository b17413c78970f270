/* roster_etcd_lease.c -- the keeper's thread: all that a keeper says to etcd is said here, so that an etcd that does not answer delays
 * nobody's heartbeat.
 *
 * Every third of its time the lease is prolonged; when that fails, every second. A lease that ended while etcd could not be
 * reached is taken anew, unless another host has the place by then: then this one no longer keeps the roster.
 */
#include "roster/etcd/etcd_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { RETRY_MS = 1000 };

struct lease {
    lease_spec spec;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool hurry, ending, orderly; /* under the lock */
    bool finishing;              /* the owner's */
    int status;
    char text[512];
    atomic_ullong sure_ns;
    atomic_bool lost, give_up;
    bool told; /* that etcd does not answer */
    atomic_bool watch, run;
    int64_t running_id; /* of the key that says so; 0: none yet */
    keeping end;        /* under the lock */
};

static void tell_of_absence(lease *l)
{
    double away_s = (double)(co_now_ns() - atomic_load(&l->sure_ns)) / 1e9;
    char line[1200];

    if (l->told || away_s < ETCD_AWAY_MS / 1000.0)
        return;
    l->told = true;
    snprintf(line, sizeof line,
             "etcd has not answered for %.0f s; the job goes on, but if a host is lost now, it stops until "
             "etcd is "
             "back: %.800s",
             away_s, co_errmsg());
    l->spec.talk(l->spec.ctx, line);
}

static void tell_of_return(lease *l)
{
    if (l->told)
        l->spec.talk(l->spec.ctx, "etcd answers again");
    l->told = false;
}

/* A host that cannot go on may have ended the job of a keeper that waits for it. */
static void look_for_end(lease *l, const co_patience *p)
{
    keeping now;

    if (etcd_look(l->spec.etcd, &now, l->spec.me.job, p) || !now.over)
        return;
    pthread_mutex_lock(&l->lock);
    l->end = now;
    pthread_mutex_unlock(&l->lock);
}

/* Has etcd say that the job runs, for as long as may be. *held: false if the place turns out to be another's. */
static co_err keep_running(lease *l, bool *held, const co_patience *p)
{
    bool there = false;

    if (l->running_id)
        CO_TRY(etcd_stay(l->spec.etcd, &there, l->running_id, p));
    return there ? CO_OK
                 : etcd_mark(l->spec.etcd, held, &l->running_id, &l->spec.me, l->spec.id,
                             ETCD_RUNS_LEASES * l->spec.ttl_s, p);
}

/* Prolongs the lease, or takes the place anew. Whether etcd answered. */
static bool prolong(lease *l)
{
    co_patience p = co_patience_s(l->spec.ttl_s);
    uint64_t began = co_now_ns();
    keeping other = {0};
    bool held = false;
    int64_t id = 0;

    p.give_up = &l->give_up;
    co_err err = etcd_stay(l->spec.etcd, &held, l->spec.id, &p);
    if (!err && !held) {
        began = co_now_ns();
        err = etcd_campaign(l->spec.etcd, &other, &id, &l->spec.me, l->spec.ttl_s, &p);
        held = id != 0;
        if (held)
            l->spec.id = id;
        else if (!err)
            atomic_store(&l->lost, true);
    }
    if (held && !err && atomic_load(&l->run))
        err = keep_running(l, &held, &p);
    if (err && err != CO_ESTOP)
        tell_of_absence(l);
    else if (!err)
        tell_of_return(l);
    if (held && !err)
        atomic_store(&l->sure_ns, began);
    if (held && !err && atomic_load(&l->watch))
        look_for_end(l, &p);
    return !err;
}

static void nap(lease *l, double s)
{
    struct timespec until;
    uint64_t at = co_now_ns() + (uint64_t)(s * 1e9);

    until = (struct timespec){.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
    while (!l->hurry && !l->ending && !l->orderly &&
           pthread_cond_timedwait(&l->wake, &l->lock, &until) != ETIMEDOUT)
        ;
    l->hurry = false;
}

static void *lease_main(void *arg)
{
    lease *l = arg;
    bool well = true;

    pthread_mutex_lock(&l->lock);
    while (!l->ending && !l->orderly) {
        nap(l, well ? l->spec.ttl_s / 3.0 : RETRY_MS / 1000.0);
        bool on = !l->ending && !l->orderly && !atomic_load(&l->lost);
        pthread_mutex_unlock(&l->lock);
        if (on)
            well = prolong(l);
        pthread_mutex_lock(&l->lock);
    }
    bool orderly = l->orderly && !atomic_load(&l->lost);
    pthread_mutex_unlock(&l->lock);
    if (orderly) {
        co_patience soon = co_patience_s(ETCD_FAREWELL_MS / 1000.0);
        etcd_end(l->spec.etcd, l->spec.id, &l->spec.me, l->status, l->text, &soon); /* else it ends by itself */
    }
    return NULL;
}

static void lease_free(lease *l)
{
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    co_free(l);
}

co_err lease_start(lease **out, const lease_spec *spec)
{
    lease *l = co_zalloc(sizeof *l);
    pthread_condattr_t attr;

    if (!l)
        return CO_ENOMEM;
    l->spec = *spec;
    atomic_store(&l->sure_ns, spec->sure_ns);
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (co_thread_start(&l->thread, lease_main, l)) {
        lease_free(l);
        return co_fail(CO_EIO, "no thread for the lease in etcd: %m");
    }
    *out = l;
    return CO_OK;
}

uint64_t lease_sure_ns(const lease *l)
{
    return atomic_load(&l->sure_ns);
}

bool lease_lost(const lease *l)
{
    return atomic_load(&l->lost);
}

static void wake(lease *l, bool *flag)
{
    pthread_mutex_lock(&l->lock);
    *flag = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

void lease_hurry(lease *l)
{
    wake(l, &l->hurry);
}

void lease_run(lease *l)
{
    atomic_store(&l->run, true);
    lease_hurry(l);
}

void lease_watch(lease *l, bool on)
{
    atomic_store(&l->watch, on);
}

bool lease_over(lease *l, keeping *out)
{
    pthread_mutex_lock(&l->lock);
    *out = l->end;
    pthread_mutex_unlock(&l->lock);
    return out->over;
}

void lease_finish(lease *l, int status, const char *text)
{
    if (l->finishing)
        return;
    l->finishing = true;
    l->status = status;
    snprintf(l->text, sizeof l->text, "%s", text);
    atomic_store(&l->give_up, true);
    wake(l, &l->orderly);
}

void lease_end(lease *l)
{
    if (!l)
        return;
    atomic_store(&l->give_up, true);
    wake(l, &l->ending);
    pthread_join(l->thread, NULL);
    if (!l->finishing)
        etcd_owe(l->spec.etcd, l->spec.id);
    lease_free(l);
}
