#include "data/sets.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/hash.h"

/* --- real slices: the same bytes for any number of threads --------------------------------------------- */

enum { JOBS = 1000, SLICE = 7, MAX_LEN = 64, DEPTH = 6 };

struct slot {
    int32_t x[SLICE * MAX_LEN], y[SLICE * MAX_LEN], offsets[SLICE + 1];
    int64_t ids[SLICE];
};

struct feed {
    co_dataset *d;
    co_order *order;
    _Atomic int inside; /* threads in next */
    uint64_t expect;    /* index of the next call: written by whoever is in next, so TSan watches over it */
};

static bool next_slice(void *ctx, uint64_t index, co_load *job)
{
    struct feed *f = ctx;
    uint32_t n = f->d->count[CO_SPLIT_TRAIN], per = (n + SLICE - 1) / SLICE;

    CHECK(atomic_fetch_add(&f->inside, 1) == 0, "two threads in next");
    CHECK(index == f->expect++, "job %d asked for", (int)index);
    uint32_t at = (uint32_t)(index % per) * SLICE;
    const uint32_t *ids = co_order_epoch(f->order, (uint32_t)(index / per)) + at;
    job->split = CO_SPLIT_TRAIN;
    job->shape = co_slice_of(f->d, CO_SPLIT_TRAIN, ids, (int)(n - at < SLICE ? n - at : SLICE));
    memcpy(job->ids, ids, (size_t)job->shape.n * sizeof *ids);
    atomic_fetch_sub(&f->inside, 1);
    return index < JOBS;
}

static void in_slot(void *ctx, void *buffer, co_load *job)
{
    struct slot *s = buffer;
    job->dst = (co_slice_dst){.x = s->x, .y = s->y, .ids = s->ids, .offsets = s->offsets, .room = SLICE};
}

/* Hash of what jobs first..JOBS gave, in order. */
static uint64_t run(int threads, uint64_t first)
{
    struct feed f = {.d = set_open("text"), .expect = first};
    struct slot *ring = calloc(DEPTH, sizeof *ring);
    co_loader *l;
    uint64_t hash = 0, index = first;
    void *buffer;

    CHECK_OK(co_order_new(&f.order, f.d, CO_SPLIT_TRAIN, 7, true));
    CHECK_OK(co_loader_start(&l, &(co_loader_spec){f.d, threads, threads ? DEPTH : 1, (char *)ring,
                                                   sizeof *ring, first, next_slice, in_slot, &f}));
    uint64_t before = co_alloc_count();
    for (const co_load *job; (job = co_loader_get(l, index, &buffer)); index++) {
        const struct slot *s = buffer;
        size_t n = (size_t)job->shape.n, cells = (size_t)job->shape.tokens;
        CHECK(job->dst.x == s->x, "the buffer is not the job's");
        uint64_t parts[5] = {hash, co_fnv1a64(s->x, cells * sizeof *s->x),
                             co_fnv1a64(s->y, cells * sizeof *s->y), co_fnv1a64(s->offsets, sizeof s->offsets),
                             co_fnv1a64(s->ids, n * sizeof *s->ids)};
        hash = co_fnv1a64(parts, sizeof parts);
    }
    CHECK(index == JOBS, "ended at %d", (int)index);
    CHECK(!co_loader_get(l, index, &buffer), "something past the end");
    CHECK(co_alloc_count() == before, "%d allocations", (int)(co_alloc_count() - before));
    CHECK(co_loader_wait_ns(l) > 0, "no time passed");
    co_loader_stop(l);
    co_order_free(f.order);
    co_dataset_close(f.d);
    free(ring);
    return hash;
}

TEST(any_number_of_loader_threads_gives_the_same_bytes_tsan)
{
    uint64_t want = run(0, 0);
    for (int threads = 1; threads <= 4; threads *= 2)
        CHECK(run(threads, 0) == want, "%d threads give other bytes", threads);
}

TEST(a_loader_may_begin_anywhere_tsan)
{
    uint64_t want = run(0, 333);
    CHECK(want != run(0, 332), "the hash is blind");
    CHECK(run(3, 333) == want, "other bytes");
}

/* --- made-up slices, to hold threads up where we like -------------------------------------------------- */

struct gate {
    co_dataset d;
    uint64_t end;          /* jobs there are */
    int64_t stuck_in_fill; /* job that waits for `open`; -1 for none */
    int64_t stuck_in_next;
    sem_t open;
    _Atomic uint64_t loaded;
    _Atomic int unmasked;
};

static struct gate gate;

/* The slice's one "id" is the job's number, and is all that is written. */
static int gate_fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                     const co_draw *draw, const co_slice_dst *dst)
{
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    gate.unmasked += !sigismember(&mask, SIGINT) || !sigismember(&mask, SIGTERM);
    if (gate.stuck_in_fill == (int64_t)id[0])
        sem_wait(&gate.open);
    *(uint64_t *)dst->x = id[0];
    gate.loaded++;
    return 0;
}

static bool gate_next(void *ctx, uint64_t index, co_load *job)
{
    if (gate.stuck_in_next == (int64_t)index)
        sem_wait(&gate.open);
    job->ids[0] = (uint32_t)index;
    job->shape = (co_slice_shape){1, 0};
    return index < gate.end;
}

static void gate_where(void *ctx, void *buffer, co_load *job)
{
    job->dst = (co_slice_dst){.x = buffer};
}

static uint64_t gate_ring[4 * 8];

static co_loader *gate_start(int threads, uint64_t end, int64_t stuck_in_fill, int64_t stuck_in_next)
{
    co_loader *l;
    gate.d.fill = gate_fill;
    gate.end = end;
    gate.stuck_in_fill = stuck_in_fill;
    gate.stuck_in_next = stuck_in_next;
    sem_init(&gate.open, 0, 0);
    CHECK_OK(co_loader_start(
        &l, &(co_loader_spec){&gate.d, threads, 4, (char *)gate_ring, 64, 0, gate_next, gate_where, NULL}));
    return l;
}

static void gets(co_loader *l, uint64_t index)
{
    void *buffer;
    CHECK(co_loader_get(l, index, &buffer), "ended at %d", (int)index);
    CHECK(*(uint64_t *)buffer == index, "%d in place of %d", (int)*(uint64_t *)buffer, (int)index);
}

TEST(a_slice_that_is_there_does_not_wait_for_a_slow_thread_tsan)
{
    co_loader *l = gate_start(2, 100, 2, -1);
    gets(l, 0);
    gets(l, 1); /* with job 2 stuck in another thread */
    sem_post(&gate.open);
    for (uint64_t i = 2; i < 100; i++)
        gets(l, i);
    co_loader_stop(l);
}

TEST(a_slice_that_is_there_does_not_wait_for_the_next_ones_to_be_chosen_tsan)
{
    co_loader *l = gate_start(2, 100, -1, 2);
    gets(l, 0);
    gets(l, 1);
    sem_post(&gate.open);
    for (uint64_t i = 2; i < 100; i++)
        gets(l, i);
    co_loader_stop(l);
}

static bool loaded_all_it_may(void *want)
{
    return gate.loaded == *(uint64_t *)want;
}

TEST(threads_load_ahead_to_the_depth_and_leave_the_slice_in_use_alone_tsan)
{
    co_loader *l = gate_start(3, 100, -1, -1);
    void *buffer;

    for (uint64_t i = 0; i < 20; i++) {
        uint64_t want = i + 4;
        CHECK(co_loader_get(l, i, &buffer), "ended");
        test_until(loaded_all_it_may, &want, 20, "the ring to be full");
        CHECK(*(uint64_t *)buffer == i, "overwritten by %d", (int)*(uint64_t *)buffer);
    }
    CHECK(gate.loaded == 23, "%d loaded", (int)gate.loaded);
    CHECK(gate.unmasked == 0, "a loader thread takes signals");
    co_loader_stop(l); /* all three wait for room */
}

TEST(a_loader_stops_before_its_first_slice_is_taken_and_after_its_end_tsan)
{
    void *buffer;

    for (int threads = 0; threads <= 4; threads += 2)
        for (uint64_t end = 0; end < 6; end++) {
            co_loader *l = gate_start(threads, end, -1, -1);
            co_loader_stop(l);
            l = gate_start(threads, end, -1, -1);
            for (uint64_t i = 0; i < end; i++)
                gets(l, i);
            CHECK(!co_loader_get(l, end, &buffer), "past the end");
            CHECK(!co_loader_get(l, end, &buffer), "past the end, asked again");
            co_loader_stop(l);
        }
    co_loader_stop(NULL);
}

static void *open_late(void *ctx)
{
    uint64_t want = 3;
    test_until(loaded_all_it_may, &want, 20, "the others to be loaded");
    sem_post(&gate.open);
    return NULL;
}

TEST(a_caller_waits_for_the_very_slice_it_asked_for_tsan)
{
    co_loader *l = gate_start(2, 100, 0, -1); /* jobs 1 to 3 are there long before job 0 */
    pthread_t t;

    CHECK(pthread_create(&t, NULL, open_late, NULL) == 0, "no thread");
    for (uint64_t i = 0; i < 10; i++)
        gets(l, i);
    pthread_join(t, NULL);
    co_loader_stop(l);
}

static co_err try_loader(void *ctx)
{
    co_loader *l = NULL;
    gate.d.fill = gate_fill;
    gate.stuck_in_fill = gate.stuck_in_next = -1;
    co_err err = co_loader_start(
        &l, &(co_loader_spec){&gate.d, 2, 4, (char *)gate_ring, 64, 0, gate_next, gate_where, NULL});
    co_loader_stop(l);
    return err;
}

TEST(a_loader_says_so_when_memory_is_out)
{
    test_each_alloc_fails(try_loader, NULL);
}
