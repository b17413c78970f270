/* loader.c -- threads that load slices ahead into a ring, and hand them over in order.
 *
 *   held              the slice the caller is using
 *   handed            the next job that a thread will begin
 *   slot of job i     i % depth; free for a new job once held is past the old one
 *
 *          held         loaded, or being loaded        handed     held + depth
 *     ------+----------------------------------------------+----------+------> index
 *
 * Invariants, all under one lock:
 *   1. held <= handed <= held + depth, so no two jobs in flight share a slot;
 *   2. next() is called by the one thread that set `handing`, with index `handed`: in order, one at a time.
 *      It runs outside the lock, as fill does: it may shuffle an epoch, and a slice that is ready must not
 *      wait for that;
 *   3. slot.ready belongs to the job in the slot and is cleared before the slot is filled anew.
 * What is loaded does not depend on who loads it or when: the bytes are the same for any number of threads.
 *
 * Cost: a lock and a wake-up per slice on each side. All memory is taken at the start.
 */
#include "data/data.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/thread.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/maths.h"

struct slot {
    bool ready;
    co_load job;
};

struct co_loader {
    co_loader_spec spec;
    struct slot *slots; /* [depth] */
    pthread_t *threads; /* [spec.threads], of which `started` run */
    int started;
    uint64_t want;    /* index of the caller's next get */
    uint64_t wait_ns; /* the caller's */
    _Atomic uint64_t read_ns, decode_ns, augment_ns;

    pthread_mutex_t lock;
    pthread_cond_t room, ready; /* for the threads, for the caller */
    uint64_t held, handed;
    bool handing, ended, stopping; /* ended: job `handed` does not exist */
};

static void *buffer_of(const co_loader *l, uint64_t index)
{
    return l->spec.ring + index % (uint64_t)l->spec.depth * l->spec.slot_bytes;
}

static struct slot *slot_of(const co_loader *l, uint64_t index)
{
    return &l->slots[index % (uint64_t)l->spec.depth];
}

static void load(co_loader *l, uint64_t index)
{
    co_fill_times t = {0};
    co_load *job = &slot_of(l, index)->job;

    CO_ASSERT(job->shape.n >= 0 && job->shape.n <= CO_SLICE_MAX, "a slice fits in a co_load");
    l->spec.where(l->spec.ctx, buffer_of(l, index), job);
    job->draw.times = &t;
    job->bad = co_dataset_fill(l->spec.data, job->split, job->ids, job->shape, &job->draw, &job->dst);
    job->draw.times = NULL;
    atomic_fetch_add_explicit(&l->read_ns, t.read_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->decode_ns, t.decode_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&l->augment_ns, t.augment_ns, memory_order_relaxed);
}

/* Takes the next job. False when the loader stops: a thread that exited at the end of the jobs would fault in
 * code of its own while steps still run. Called and left with the lock held. */
static bool take_job(co_loader *l, uint64_t *index)
{
    for (;;) {
        if (l->stopping)
            return false;
        if (l->ended || l->handing || l->handed >= l->held + (uint64_t)l->spec.depth) {
            pthread_cond_wait(&l->room, &l->lock);
            continue;
        }
        struct slot *slot = slot_of(l, l->handed);
        l->handing = true;
        slot->ready = false;
        pthread_mutex_unlock(&l->lock);
        bool is_one = l->spec.next(l->spec.ctx, l->handed, &slot->job);
        pthread_mutex_lock(&l->lock);
        l->handing = false;
        pthread_cond_broadcast(&l->room);
        if (is_one) {
            *index = l->handed++;
            return true;
        }
        l->ended = true;
        pthread_cond_signal(&l->ready);
    }
}

static void *work(void *loader)
{
    co_loader *l = loader;
    uint64_t index;

    co_fpu_init();
    co_touch_stack(16 << 10);
    pthread_mutex_lock(&l->lock);
    while (take_job(l, &index)) {
        pthread_mutex_unlock(&l->lock);
        load(l, index);
        pthread_mutex_lock(&l->lock);
        slot_of(l, index)->ready = true;
        pthread_cond_signal(&l->ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static co_err start_threads(co_loader *l)
{
    sigset_t before;
    int rc = 0;

    co_threads_begin(&before);
    while (l->started < l->spec.threads && !rc) {
        rc = pthread_create(&l->threads[l->started], NULL, work, l);
        l->started += !rc;
    }
    co_threads_end(&before);
    errno = rc;
    return rc ? co_fail(CO_EIO, "start loader thread %d of %d: %m (data.workers asks for them)",
                        l->started + 1, l->spec.threads)
              : CO_OK;
}

/* The lists of ids are left as they are: no page of them is taken before it is used. */
static struct slot *new_slots(int depth)
{
    const size_t ids = offsetof(struct slot, job.ids), after = ids + sizeof(((co_load *)0)->ids);
    struct slot *slots = co_alloc((size_t)depth * sizeof *slots);

    for (int i = 0; slots && i < depth; i++) {
        memset(&slots[i], 0, ids);
        memset((char *)&slots[i] + after, 0, sizeof *slots - after);
    }
    return slots;
}

co_err co_loader_start(co_loader **out, const co_loader_spec *spec)
{
    CO_ASSERT(spec->threads >= 0 && spec->depth >= (spec->threads ? 2 : 1),
              "threads load ahead of the caller");
    co_loader *l = co_zalloc(sizeof *l);

    if (!l)
        return CO_ENOMEM;
    l->spec = *spec;
    l->want = l->held = l->handed = spec->first;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->room, NULL);
    pthread_cond_init(&l->ready, NULL);
    l->slots = new_slots(spec->depth);
    l->threads = l->slots ? co_array((size_t)spec->threads, sizeof *l->threads) : NULL;
    co_err err = l->threads ? start_threads(l) : CO_ENOMEM;
    if (err) {
        co_loader_stop(l);
        return err;
    }
    *out = l;
    return CO_OK;
}

/* Without threads: next and load, here and now. */
static bool load_now(co_loader *l, uint64_t index)
{
    l->ended = l->ended || !l->spec.next(l->spec.ctx, index, &slot_of(l, index)->job);
    if (!l->ended)
        load(l, index);
    return !l->ended;
}

static bool wait_for(co_loader *l, uint64_t index)
{
    pthread_mutex_lock(&l->lock);
    l->held = index; /* the one before is given back */
    pthread_cond_signal(&l->room);
    while (!(index < l->handed && slot_of(l, index)->ready) && !(l->ended && index >= l->handed))
        pthread_cond_wait(&l->ready, &l->lock);
    bool there = index < l->handed;
    pthread_mutex_unlock(&l->lock);
    return there;
}

const co_load *co_loader_get(co_loader *l, uint64_t index, void **buffer)
{
    uint64_t begin = co_now_ns();

    CO_ASSERT(index == l->want, "slices are taken one after the other");
    bool there = l->spec.threads ? wait_for(l, index) : load_now(l, index);
    l->wait_ns += co_now_ns() - begin;
    if (!there)
        return NULL;
    l->want++;
    *buffer = buffer_of(l, index);
    return &slot_of(l, index)->job;
}

uint64_t co_loader_wait_ns(const co_loader *l)
{
    return l->wait_ns;
}

co_fill_times co_loader_times(const co_loader *l)
{
    return (co_fill_times){atomic_load_explicit(&l->read_ns, memory_order_relaxed),
                           atomic_load_explicit(&l->decode_ns, memory_order_relaxed),
                           atomic_load_explicit(&l->augment_ns, memory_order_relaxed)};
}

void co_loader_stop(co_loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->room);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++)
        pthread_join(l->threads[i], NULL);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->room);
    pthread_mutex_destroy(&l->lock);
    co_free(l->threads);
    co_free(l->slots);
    co_free(l);
}
