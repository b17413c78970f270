/* ops_measure.c -- times every call of a slice's passes, by one process and by two that compute at the same time.
 *
 * The passes are those of a rank: each process has a slice of its own in memory, loaded once, and runs forward and
 * backward again and again. One process and two take turns, BLOCKS times, so that a changing machine hits both. Peaks
 * are measured at the start of a block by as many processes. Processes go through the parts of a block together, and
 * one that has its rounds goes on computing until the others have theirs, so that nobody is timed alone.
 *
 * A call's time is the median of all rounds of all processes.
 */
#include "bench/ops_int.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 3 };

/* Shared by the processes of a block. */
struct block {
    atomic_int met, done; /* arrivals at all meetings so far; processes that have all their rounds */
    atomic_bool over;     /* somebody failed: do not wait for it */
    int ranks, rounds, n;
    co_peak peak[OPS_RANKS];
    double ms[]; /* [ranks][rounds][n] */
};

/* Waits until every process has come to its meeting number `meeting`, from 1 on. */
static void meet(struct block *b, int meeting)
{
    atomic_fetch_add(&b->met, 1);
    while (atomic_load(&b->met) < meeting * b->ranks && !atomic_load(&b->over))
        sched_yield();
}

static co_err compute(struct block *b, int rank, co_plan *plan)
{
    co_calls *calls;
    double *spare = co_array((size_t)b->n, sizeof *spare);

    if (!spare)
        return CO_ENOMEM;
    co_err err = co_calls_open(&calls, plan);
    if (!err) {
        meet(b, 1);
        err = co_peak_measure(&b->peak[rank]);
        co_calls_run(calls, spare); /* warms caches and pages */
        meet(b, 2);
        for (int i = 0; i < b->rounds && !err; i++)
            co_calls_run(calls, b->ms + ((size_t)rank * (size_t)b->rounds + (size_t)i) * (size_t)b->n);
        atomic_fetch_add(&b->done, 1);
        while (atomic_load(&b->done) < b->ranks && !atomic_load(&b->over) && !err)
            co_calls_run(calls, spare);
        co_calls_close(calls);
    }
    co_free(spare);
    return err;
}

static pid_t start(struct block *b, int rank, co_plan *plan)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    co_err err = compute(b, rank, plan);
    if (err)
        co_say("cohort: bench ops: %s", co_errmsg());
    _exit(err ? 1 : 0);
}

static co_err run_block(struct block *b, co_plan *plan)
{
    int running = 0, status;
    co_err err = CO_OK;

    for (int rank = 0; rank < b->ranks && !err; rank++)
        if (start(b, rank, plan) > 0)
            running++;
        else
            err = co_fail(CO_EIO, "fork: %m");
    atomic_store(&b->over, err != CO_OK);
    for (; running > 0; running--) {
        if (wait(&status) < 0)
            return co_fail(CO_EIO, "wait: %m");
        if (status == 0)
            continue;
        atomic_store(&b->over, true);
        err = co_fail(CO_EFAIL, "bench ops: a process that computes ended with status %d", status);
    }
    return err;
}

/* All rounds of all blocks with so many ranks: [call][round]. */
struct samples {
    double *ms;
    int have, room; /* rounds */
};

static void collect(struct samples *s, const struct block *b)
{
    for (int i = 0; i < b->ranks * b->rounds; i++, s->have++)
        for (int call = 0; call < b->n; call++)
            s->ms[(size_t)call * (size_t)s->room + (size_t)s->have] =
                b->ms[(size_t)i * (size_t)b->n + (size_t)call];
}

/* The rates of a process: the best that any has reached with so many at once. */
static void keep_peak(co_peak *best, const struct block *b)
{
    for (int rank = 0; rank < b->ranks; rank++) {
        const co_peak *p = &b->peak[rank];
        best->flops_per_s = p->flops_per_s > best->flops_per_s ? p->flops_per_s : best->flops_per_s;
        best->bytes_per_s = p->bytes_per_s > best->bytes_per_s ? p->bytes_per_s : best->bytes_per_s;
    }
}

static co_err one_block(ops *o, int ranks, int rounds, struct samples *s)
{
    size_t len = sizeof(struct block) + (size_t)(ranks * rounds) * (size_t)o->n * sizeof(double);
    struct block *b = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (b == MAP_FAILED)
        return co_fail(CO_ENOMEM, "bench ops: %zu bytes of shared memory: %m", len);
    b->ranks = ranks;
    b->rounds = rounds;
    b->n = o->n;
    co_err err = run_block(b, o->plan);
    if (!err) {
        collect(s, b);
        keep_peak(&o->peak[ranks - 1], b);
    }
    munmap(b, len);
    return err;
}

co_err ops_measure(ops *o)
{
    struct samples s[OPS_RANKS] = {{0}};
    int rounds = (o->rounds + BLOCKS - 1) / BLOCKS;
    co_err err = CO_OK;

    for (int ranks = 1; ranks <= OPS_RANKS; ranks++) {
        s[ranks - 1].room = BLOCKS * ranks * rounds;
        s[ranks - 1].ms = co_array((size_t)s[ranks - 1].room * (size_t)o->n, sizeof(double));
        if (!s[ranks - 1].ms)
            err = CO_ENOMEM;
    }
    for (int block = 0; block < BLOCKS; block++)
        for (int ranks = 1; ranks <= OPS_RANKS && !err; ranks++)
            err = one_block(o, ranks, rounds, &s[ranks - 1]);
    for (int ranks = 0; ranks < OPS_RANKS; ranks++) {
        for (int call = 0; call < o->n && !err; call++)
            o->row[call].ms[ranks] = median(s[ranks].ms + (size_t)call * (size_t)s[ranks].room, s[ranks].have);
        co_free(s[ranks].ms);
    }
    return err;
}
