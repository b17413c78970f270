/* lease.c -- the keeper's own thread for etcd, so that an etcd that does not answer delays no heartbeat.
 *
 * The lease is renewed after each third of its time; after a failure, every second. If the lease ended
 * while etcd could not be reached, this thread takes a new one. If another host has the place by then,
 * this host no longer keeps the roster.
 */
#include "roster/etcd/etcd_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

struct lease {
    lease_spec spec;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool hurry, ending, orderly; /* under the lock */
    bool finishing;              /* written by the carrier alone */
    co_leave how;                /* the job ends, once `orderly` */
    atomic_ullong sure_ns;
    atomic_bool lost, give_up;
    bool talked; /* we have reported that etcd does not answer */
    atomic_bool watch, run;
    int64_t running_id; /* lease of the note that the job runs; 0: none yet */
    keeping end;        /* under the lock */
};

static void tell_of_absence(lease *held)
{
    double away_s = (double)(co_now_ns() - atomic_load(&held->sure_ns)) / 1e9;
    char line[1200];

    if (held->talked || away_s < ETCD_AWAY_MS / 1000.0)
        return;
    held->talked = true;
    snprintf(line, sizeof line,
             "etcd has not answered for %.0f s; the job goes on, but if a host is lost now, it stops until "
             "etcd is back: %.800s",
             away_s, co_errmsg());
    held->spec.talk(held->spec.ctx, line);
}

static void tell_of_return(lease *held)
{
    if (held->talked)
        held->spec.talk(held->spec.ctx, "etcd answers again");
    held->talked = false;
}

/* A host that cannot go on may have noted the end of the job, while this keeper waits for that host. */
static void look_for_end(lease *held, const co_patience *patience)
{
    keeping now;

    if (etcd_look(held->spec.etcd, &now, held->spec.me.job, patience) || !now.over)
        return;
    pthread_mutex_lock(&held->lock);
    held->end = now;
    pthread_mutex_unlock(&held->lock);
}

/* Keeps the note in etcd that the job runs. *ours false: the place turned out to be another's. */
static co_err keep_running(lease *held, bool *ours, const co_patience *patience)
{
    bool there = false;

    if (held->running_id)
        CO_TRY(etcd_stay(held->spec.etcd, &there, held->running_id, patience));
    return there ? CO_OK
                 : etcd_mark(held->spec.etcd, ours, &held->running_id, &held->spec.me, held->spec.id,
                             ETCD_RUNS_LEASES * held->spec.ttl_s, patience);
}

/* Renews the lease, or takes the place with a new one. True: etcd answered. */
static bool renew(lease *held)
{
    co_patience patience = co_patience_s(held->spec.ttl_s);
    uint64_t began = co_now_ns();
    keeping other = {0};
    bool ours = false;
    int64_t id = 0;

    patience.give_up = &held->give_up;
    co_err err = etcd_stay(held->spec.etcd, &ours, held->spec.id, &patience);
    if (!err && !ours) {
        began = co_now_ns();
        err = etcd_campaign(held->spec.etcd, &other, &id, &held->spec.me, held->spec.ttl_s, &patience);
        ours = id != 0;
        if (ours)
            held->spec.id = id;
        else if (!err)
            atomic_store(&held->lost, true);
    }
    if (ours && !err && atomic_load(&held->run))
        err = keep_running(held, &ours, &patience);
    if (err && err != CO_ESTOP)
        tell_of_absence(held);
    else if (!err)
        tell_of_return(held);
    if (ours && !err)
        atomic_store(&held->sure_ns, began);
    if (ours && !err && atomic_load(&held->watch))
        look_for_end(held, &patience);
    return !err;
}

static void nap(lease *held, double s)
{
    struct timespec until;
    uint64_t at = co_now_ns() + (uint64_t)(s * 1e9);

    until = (struct timespec){.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
    while (!held->hurry && !held->ending && !held->orderly &&
           pthread_cond_timedwait(&held->wake, &held->lock, &until) != ETIMEDOUT)
        ;
    held->hurry = false;
}

static void *lease_main(void *arg)
{
    lease *held = arg;
    bool well = true;

    pthread_mutex_lock(&held->lock);
    while (!held->ending && !held->orderly) {
        nap(held, well ? held->spec.ttl_s / 3.0 : ETCD_RETRY_MS / 1000.0);
        bool on = !held->ending && !held->orderly && !atomic_load(&held->lost);
        pthread_mutex_unlock(&held->lock);
        if (on)
            well = renew(held);
        pthread_mutex_lock(&held->lock);
    }
    bool orderly = held->orderly && !atomic_load(&held->lost);
    pthread_mutex_unlock(&held->lock);
    if (orderly) {
        co_patience soon = co_patience_s(ETCD_FAREWELL_MS / 1000.0);
        /* if this fails, the lease runs out by itself */
        etcd_end(held->spec.etcd, held->spec.id, &held->spec.me, &held->how, &soon);
    }
    return NULL;
}

static void lease_free(lease *held)
{
    pthread_cond_destroy(&held->wake);
    pthread_mutex_destroy(&held->lock);
    co_free(held);
}

co_err lease_start(lease **out, const lease_spec *spec)
{
    lease *held = co_zalloc(sizeof *held);
    pthread_condattr_t attr;

    if (!held)
        return CO_ENOMEM;
    held->spec = *spec;
    atomic_store(&held->sure_ns, spec->sure_ns);
    pthread_mutex_init(&held->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&held->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (co_thread_start(&held->thread, lease_main, held)) {
        lease_free(held);
        return co_fail(CO_EIO, "no thread for the lease in etcd: %m");
    }
    *out = held;
    return CO_OK;
}

uint64_t lease_sure_ns(const lease *held)
{
    return atomic_load(&held->sure_ns);
}

bool lease_lost(const lease *held)
{
    return atomic_load(&held->lost);
}

static void wake(lease *held, bool *flag)
{
    pthread_mutex_lock(&held->lock);
    *flag = true;
    pthread_cond_signal(&held->wake);
    pthread_mutex_unlock(&held->lock);
}

void lease_hurry(lease *held)
{
    wake(held, &held->hurry);
}

void lease_run(lease *held)
{
    atomic_store(&held->run, true);
    lease_hurry(held);
}

void lease_watch(lease *held, bool on)
{
    atomic_store(&held->watch, on);
}

bool lease_over(lease *held, keeping *out)
{
    pthread_mutex_lock(&held->lock);
    *out = held->end;
    pthread_mutex_unlock(&held->lock);
    return out->over;
}

void lease_finish(lease *held, const co_leave *how)
{
    if (held->finishing)
        return;
    held->finishing = true;
    held->how = *how;
    atomic_store(&held->give_up, true);
    wake(held, &held->orderly);
}

void lease_end(lease *held)
{
    if (!held)
        return;
    atomic_store(&held->give_up, true);
    wake(held, &held->ending);
    pthread_join(held->thread, NULL);
    if (!held->finishing)
        etcd_owe(held->spec.etcd, held->spec.id);
    lease_free(held);
}
