/* unpack.c -- several files read whole into memory at once, a CPU each.
 *
 * For xz, which unpacks some 20 MB/s: the six files of CIFAR-10 take ten seconds one after the other; once, as what
 * comes out is kept (cache.c). The caller
 * works too, so that a thread that could not be started is no failure, and joins all others before it returns: a
 * supervisor forks, and must be one thread then. A job's message stays in the job, as co_fail's is the thread's.
 */
#include "data/cache_int.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { MOST_THREADS = 16, SPARE = 1 << 20 }; /* SPARE: a file of another size is told by its size */

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

/* From the cache if it can be; what is wrong with a file is told by the file itself. */
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
