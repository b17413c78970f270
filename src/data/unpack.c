/* unpack.c -- several files read whole into memory at once, a CPU each.
 *
 * xz unpacks about 20 MB/s, so the six files of CIFAR-10 would take ten seconds one after the other. It is
 * done once: cache.c keeps what comes out. The caller works too, so it does not matter if a thread cannot be
 * started. It joins all threads before it returns, because a supervisor forks and must have one thread then.
 * A job keeps its own error message, because co_fail's message belongs to the thread.
 */
#include "data/cache_int.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

/* SPARE: a file of the wrong size is unpacked a little further, so that the message has its size. */
enum { MOST_THREADS = 16, SPARE = 1 << 20 };

struct crew {
    struct unpack_job *jobs;
    int n;
    _Atomic int next;
};

static co_err read_from(struct unpack_job *job, const char *path)
{
    packed *p;

    CO_TRY(packed_open(&p, path));
    co_err err = packed_exactly(p, job->to, job->want, 0);
    packed_close(p);
    return err;
}

/* From the cache if possible. If a file is damaged, reading the file itself gives the message. */
static co_err unpack(struct unpack_job *job)
{
    char plain[4096];

    CO_TRY(cache_plain(plain, job->path, job->want + SPARE));
    co_err err = *plain ? read_from(job, plain) : CO_EINPUT;
    return err == CO_OK || err == CO_ENOMEM ? err : read_from(job, job->path);
}

static void *work(void *arg)
{
    struct crew *crew = arg;

    for (int i; (i = atomic_fetch_add(&crew->next, 1)) < crew->n;) {
        struct unpack_job *job = &crew->jobs[i];
        job->err = unpack(job);
        if (job->err)
            snprintf(job->why, sizeof job->why, "%s", co_errmsg());
    }
    return NULL;
}

static int cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

co_err unpack_all(struct unpack_job *jobs, int n)
{
    struct crew crew = {.jobs = jobs, .n = n};
    pthread_t helpers[MOST_THREADS];
    int started = 0, want = (n < cpus() ? n : cpus()) - 1;
    sigset_t all, before;

    sigfillset(&all); /* signals are for the thread that expects them */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < want && started < MOST_THREADS && !pthread_create(&helpers[started], NULL, work, &crew))
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(&crew);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    for (int i = 0; i < n; i++)
        if (jobs[i].err)
            return co_fail(jobs[i].err, "%s", jobs[i].why);
    return CO_OK;
}
