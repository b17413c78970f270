/* check_walk.c -- reads every sample of a set once, by as many threads as there are CPUs.
 *
 * Threads claim blocks of samples; each sample has its own place for what was found, and sums are of whole
 * numbers, so the result does not depend on the threads. The caller works too and tells how far it is. Costs
 * 12 bytes a sample.
 */
#include "data/check_int.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

enum { BLOCK = 64, MOST_THREADS = 16 };

struct crew {
    walk *w;
    _Atomic uint64_t next;
    _Atomic bool no_memory;
    pthread_mutex_t lock; /* of the sums in w */
    void (*tell)(void *ctx, uint64_t done, uint64_t of);
    void *ctx;
};

co_split walk_split(const walk *w, uint64_t i, uint32_t *id)
{
    int s = 0;

    for (; i >= w->set->count[s]; s++)
        i -= w->set->count[s];
    *id = (uint32_t)i;
    return (co_split)s;
}

/* 64 bits of the pixels; never 0. */
static uint64_t hash_pixels(const uint8_t *bytes, size_t n)
{
    uint64_t h = n ^ 0x9E3779B97F4A7C15u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001B3u;
    h ^= h >> 29;
    return h ? h : 1;
}

struct sums {
    uint64_t sum[3], squares[3], pixels;
};

/* x [planes,plane] of 0 to 1 back to bytes, which are added up if the sample is one to train on. */
static uint64_t take_pixels(struct sums *sums, uint8_t *bytes, const float *x, size_t planes, size_t plane,
                            bool add)
{
    for (size_t i = 0; i < planes * plane; i++)
        bytes[i] = (uint8_t)(x[i] * 255.0f + 0.5f);
    for (size_t c = 0; add && c < planes; c++) {
        uint64_t sum = 0, squares = 0;
        for (size_t i = 0; i < plane; i++) {
            uint64_t b = bytes[c * plane + i];
            sum += b;
            squares += b * b;
        }
        sums->sum[c] += sum;
        sums->squares[c] += squares;
    }
    sums->pixels += add ? plane : 0;
    return hash_pixels(bytes, planes * plane);
}

static void read_one(walk *w, uint64_t i, struct sums *sums, float *x, uint8_t *bytes)
{
    const co_shape *shape = &w->set->io.x;
    uint32_t id;
    co_split s = walk_split(w, i, &id);
    int bad = w->set->fill(w->set, s, &id, (co_slice_shape){.n = 1}, &(co_draw){0},
                           &(co_slice_dst){.x = x, .y = &w->label[i]});

    if (bad)
        w->label[i] = CO_IGNORE;
    else if (w->planes)
        w->hash[i] =
            take_pixels(sums, bytes, x, w->planes, (size_t)(shape->d[1] * shape->d[2]), s == CO_SPLIT_TRAIN);
    co_errclear();
}

static void add_sums(struct crew *crew, const struct sums *sums)
{
    pthread_mutex_lock(&crew->lock);
    for (int c = 0; c < 3; c++) {
        crew->w->sum[c] += sums->sum[c];
        crew->w->squares[c] += sums->squares[c];
    }
    crew->w->pixels += sums->pixels;
    pthread_mutex_unlock(&crew->lock);
}

static void work(struct crew *crew, bool tells)
{
    walk *w = crew->w;
    size_t numbers = (size_t)co_shape_count(&w->set->io.x);
    struct sums sums = {0};
    uint64_t told = co_now_ns();

    float *x = co_array(numbers, sizeof *x);
    uint8_t *bytes = co_array(numbers, 1);
    if (!x || !bytes)
        atomic_store(&crew->no_memory, true);
    for (uint64_t from; x && bytes && (from = atomic_fetch_add(&crew->next, BLOCK)) < w->n;) {
        for (uint64_t i = from; i < from + BLOCK && i < w->n; i++)
            read_one(w, i, &sums, x, bytes);
        if (tells && crew->tell && co_now_ns() - told > 500000000u) {
            crew->tell(crew->ctx, from, w->n);
            told = co_now_ns();
        }
    }
    add_sums(crew, &sums);
    co_free(x);
    co_free(bytes);
}

static void *help(void *crew)
{
    work(crew, false);
    return NULL;
}

static int helpers(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);

    return (n < MOST_THREADS ? n : MOST_THREADS) - 1;
}

co_err walk_samples(walk *out, const co_dataset *set, void (*tell)(void *ctx, uint64_t done, uint64_t of),
                    void *ctx)
{
    uint64_t n = (uint64_t)set->count[0] + set->count[1] + set->count[2];
    walk w = {.set = set, .n = n, .hash = co_array(n, sizeof *w.hash), .label = co_array(n, sizeof *w.label)};
    struct crew crew = {.w = &w, .lock = PTHREAD_MUTEX_INITIALIZER, .tell = tell, .ctx = ctx};
    pthread_t thread[MOST_THREADS];
    int started = 0, want = helpers();
    sigset_t before;

    if (n && (!w.hash || !w.label)) {
        walk_fini(&w);
        return CO_ENOMEM;
    }
    w.planes = set->pictures && set->io.x.nd == 3 && set->io.x.d[0] <= 3 ? (uint32_t)set->io.x.d[0] : 0;
    co_threads_begin(&before);
    while (started < want && !pthread_create(&thread[started], NULL, help, &crew))
        started++;
    co_threads_end(&before);
    work(&crew, true);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    if (atomic_load(&crew.no_memory)) {
        walk_fini(&w);
        return CO_ENOMEM;
    }
    *out = w;
    return CO_OK;
}

void walk_fini(walk *w)
{
    co_free(w->hash);
    co_free(w->label);
    *w = (walk){0};
}
