/* Claims and marks: every row of the state table in comm/mark.h, and many threads that race for claims. */
#include "comm/mark.h"

#include <pthread.h>

#include "harness.h"

static const char *const names[] = {"FRESH", "REDO", "BUSY", "DONE"};

static void takes(co_claim *c, uint32_t unit, uint32_t slot, uint32_t inc, co_claimed want)
{
    co_claimed got = co_claim_take(c, (co_who){unit, slot, inc});

    CHECK(got == want, "unit %u slot %u inc %u: %s, want %s", unit, slot, inc, names[got], names[want]);
}

TEST(a_claim_goes_to_the_first_and_is_busy_for_the_others)
{
    co_claim c = {0};

    takes(&c, 1, 3, 0, CO_CLAIM_FRESH);
    takes(&c, 1, 4, 0, CO_CLAIM_BUSY);
    takes(&c, 1, 3, 0, CO_CLAIM_BUSY); /* the holder asks again */
    CHECK(!co_claim_is_done(&c, 1), "held is not done");
    co_claim_finish(&c, (co_who){1, 3, 0});
    takes(&c, 1, 4, 0, CO_CLAIM_DONE);
    takes(&c, 1, 3, 1, CO_CLAIM_DONE);
    CHECK(co_claim_is_done(&c, 1) && co_claim_is_done(&c, 0) && !co_claim_is_done(&c, 2), "units rise");
}

TEST(a_claim_of_a_dead_holder_is_redone_by_its_own_slot_only)
{
    co_claim c = {0};

    takes(&c, 7, 2, 5, CO_CLAIM_FRESH);
    takes(&c, 7, 1, 6, CO_CLAIM_BUSY);
    takes(&c, 7, 2, 6, CO_CLAIM_REDO);
    takes(&c, 7, 2, 9, CO_CLAIM_REDO); /* the second incarnation died during it, too */
    takes(&c, 7, 2, 9, CO_CLAIM_BUSY);
    co_claim_finish(&c, (co_who){7, 2, 9});
    takes(&c, 7, 2, 10, CO_CLAIM_DONE);
}

TEST(a_claim_of_an_older_unit_is_free_and_of_a_later_one_done)
{
    co_claim c = {0};

    takes(&c, 5, 1, 0, CO_CLAIM_FRESH);
    takes(&c, 4, 2, 0, CO_CLAIM_DONE); /* a rank that is one unit behind */
    co_claim_finish(&c, (co_who){5, 1, 0});
    takes(&c, 6, 2, 0, CO_CLAIM_FRESH);
    CHECK(co_claim_is_done(&c, 5) && !co_claim_is_done(&c, 6), "a later unit's claim says that 5 is done");
    /* all bits of every field set: fields must not overlap */
    takes(&c, UINT32_MAX, 255, 0x3fffff, CO_CLAIM_FRESH);
    CHECK(co_claim_is_done(&c, UINT32_MAX - 1) && !co_claim_is_done(&c, UINT32_MAX), "held");
    co_claim_finish(&c, (co_who){UINT32_MAX, 255, 0x3fffff});
    CHECK(co_claim_is_done(&c, UINT32_MAX), "done");
}

TEST(a_mark_speaks_of_its_own_unit)
{
    co_mark m = {0};

    CHECK(co_mark_get(&m, 1) == 0, "nothing yet");
    co_mark_set(&m, 3, 17);
    CHECK(co_mark_get(&m, 3) == 17, "got %u", co_mark_get(&m, 3));
    CHECK(co_mark_get(&m, 4) == 0, "an earlier unit's count is no progress");
    CHECK(co_mark_get(&m, 2) == UINT32_MAX, "a later unit's mark: all of 2 is done");
    co_mark_set(&m, UINT32_MAX, UINT32_MAX - 1);
    CHECK(co_mark_get(&m, UINT32_MAX) == UINT32_MAX - 1, "both halves full");
}

/* Threads race for every chunk of every unit. The winner writes plain memory, so ThreadSanitizer reports a
 * race if take and finish do not order the writes. */
enum { THREADS = 4, CHUNKS = 8, UNITS = 500 };
static struct {
    co_claim claim[CHUNKS];
    uint64_t plain[CHUNKS]; /* sum of the units whose work was done on the chunk */
    _Atomic int fresh[THREADS];
} shared;

static void *race(void *arg)
{
    uint32_t slot = (uint32_t)(uintptr_t)arg;

    for (uint32_t u = 1; u <= UNITS; u++) {
        for (int c = 0; c < CHUNKS; c++) {
            co_who who = {u, slot, 0};
            if (co_claim_take(&shared.claim[c], who) != CO_CLAIM_FRESH)
                continue;
            shared.plain[c] += u;
            shared.fresh[slot]++;
            co_claim_finish(&shared.claim[c], who);
        }
        for (int c = 0; c < CHUNKS; c++)
            while (!co_claim_is_done(&shared.claim[c], u))
                sched_yield();
    }
    return NULL;
}

TEST(racing_threads_do_every_piece_once_tsan)
{
    pthread_t t[THREADS];
    int fresh = 0;

    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, race, (void *)i) == 0, "thread");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        fresh += shared.fresh[i];
    }
    CHECK(fresh == CHUNKS * UNITS, "%d pieces done, there are %d", fresh, CHUNKS * UNITS);
    for (int c = 0; c < CHUNKS; c++)
        CHECK(shared.plain[c] == (uint64_t)UNITS * (UNITS + 1) / 2, "chunk %d: an addition was lost", c);
}

TEST(a_claim_that_is_given_back_is_free_for_anybody)
{
    co_claim claim = {0};
    co_who first = {.unit = 7, .slot = 1, .inc = 1}, other = {.unit = 7, .slot = 2, .inc = 1};

    CHECK(co_claim_take(&claim, first) == CO_CLAIM_FRESH, "taken");
    CHECK(co_claim_take(&claim, other) == CO_CLAIM_BUSY && !co_claim_is_free(&claim, 7), "held");
    co_claim_give_back(&claim, first);
    CHECK(co_claim_is_free(&claim, 7) && !co_claim_is_done(&claim, 7) && co_claim_is_done(&claim, 6), "free");
    CHECK(co_claim_take(&claim, other) == CO_CLAIM_FRESH, "taken by the other");
    co_claim_finish(&claim, other);
    CHECK(co_claim_take(&claim, first) == CO_CLAIM_DONE, "done");
}
