/* Random sends, posts, cuts and turns among three hosts, against a model: every message whose view nobody
 * cut comes once, in order and whole; nothing else comes, and no memory changes that is not being received
 * into. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "harness.h"
#include "link/scene.h"

enum { HOSTS = 3, MOST = 300000, PER_VIEW = 40 };
static struct scene scene;

/* A message of the model. */
struct message {
    uint32_t view, chunk;
    size_t len;
    uint64_t seed; /* of its bytes: the sender's memory is overwritten when it leaves the view */
    uint8_t *bytes, *to;
    bool posted, sent, come;
};
static struct message all[HOSTS][HOSTS][PER_VIEW];
static int n_sent[HOSTS][HOSTS], n_posted[HOSTS][HOSTS], n_come[HOSTS][HOSTS];

static size_t random_len(uint64_t *rng)
{
    uint32_t kind = test_u32(rng) % 4;

    return kind == 0 ? test_u32(rng) % 3 : kind == 1 ? test_u32(rng) % 200 : test_u32(rng) % MOST;
}

static void prepare(uint32_t view, uint64_t *rng)
{
    for (int a = 0; a < HOSTS; a++)
        for (int b = 0; b < HOSTS; b++) {
            n_sent[a][b] = n_posted[a][b] = n_come[a][b] = 0;
            for (int i = 0; a != b && i < PER_VIEW; i++) {
                struct message *m = &all[a][b][i];
                *m = (struct message){.view = view, .chunk = (uint32_t)i, .len = random_len(rng)};
                m->bytes = co_alloc(m->len + 1);
                m->to = co_zalloc(m->len + 1);
                m->seed = test_u32(rng);
                fill(m->bytes, m->len, m->seed);
            }
        }
}

static bool is_whole(const struct message *m)
{
    static uint8_t right[MOST];

    fill(right, m->len, m->seed);
    return memcmp(right, m->to, m->len) == 0;
}

/* Reads the reports since the last call. */
static void take_reports(int h, int *seen, uint32_t view)
{
    for (; *seen < scene.host[h].n_done; ++*seen) {
        const struct done *done = &scene.host[h].done[*seen];
        CHECK(done->tag.view == view, "a report of view %u in view %u", done->tag.view, view);
        if (done->sent)
            continue;
        struct message *m = &all[done->peer][h][done->tag.chunk];
        CHECK(m->posted && !m->come && (int)done->tag.chunk == n_come[done->peer][h],
              "message %u from %d to %d came, not %d", done->tag.chunk, done->peer, h, n_come[done->peer][h]);
        CHECK(is_whole(m), "bytes");
        m->come = true;
        n_come[done->peer][h]++;
    }
    if (scene.host[h].n_done > SCENE_DONE / 2)
        scene.host[h].n_done = *seen = 0;
}

static void one_move(uint32_t view, uint64_t *rng)
{
    int a = (int)(test_u32(rng) % HOSTS), b = (a + 1 + (int)(test_u32(rng) % (HOSTS - 1))) % HOSTS;
    bool send = test_u32(rng) & 1;
    int *n = send ? &n_sent[a][b] : &n_posted[a][b];

    if (*n == PER_VIEW)
        return;
    struct message *m = &all[a][b][(*n)++];
    if (send) {
        put(&scene, a, b, tag_of(view, m->chunk), m->bytes, m->len);
        m->sent = true;
    } else {
        post(&scene, b, a, tag_of(view, m->chunk), m->to, m->len);
        m->posted = true;
    }
}

static int moves_left(void)
{
    int left = 0;

    for (int a = 0; a < HOSTS; a++)
        for (int b = 0; b < HOSTS; b++)
            left += a == b ? 0 : 3 * PER_VIEW - n_sent[a][b] - n_posted[a][b] - n_come[a][b];
    return left;
}

/* All hosts leave the view, at different times; then nothing of it may change any more. */
static void leave(uint32_t view, int *seen, uint64_t *rng)
{
    static uint8_t *before[HOSTS][HOSTS][PER_VIEW];

    for (int h = 0; h < HOSTS; h++) {
        for (int i = (int)(test_u32(rng) % 5); i > 0; i--)
            scene_turn(&scene);
        take_reports(h, &seen[h], view);
        co_link_cut(scene.host[h].link, view + 1);
        for (int a = 0; a < HOSTS; a++)
            for (int i = 0; a != h && i < PER_VIEW; i++) {
                struct message *m = &all[a][h][i];
                before[a][h][i] = co_alloc(m->len + 1);
                memcpy(before[a][h][i], m->to, m->len);
                memset(all[h][a][i].bytes, 0xee, all[h][a][i].len); /* the sender's memory is its own again */
            }
    }
    for (int i = 0; i < 30; i++)
        scene_turn(&scene);
    for (int a = 0; a < HOSTS; a++)
        for (int b = 0; b < HOSTS; b++)
            for (int i = 0; a != b && i < PER_VIEW; i++) {
                struct message *m = &all[a][b][i];
                CHECK(memcmp(before[a][b][i], m->to, m->len) == 0, "a message landed after the cut");
                co_free(before[a][b][i]);
                co_free(m->bytes);
                co_free(m->to);
            }
}

static void walk(uint64_t seed, bool tls, uint32_t views)
{
    int seen[HOSTS] = {0};
    uint64_t rng = seed;

    scene_open(&scene, HOSTS, tls);
    for (uint32_t view = 1; view <= views; view++) {
        bool whole = test_u32(&rng) % 3 == 0; /* the view is completed before it is left */
        int moves = (int)(test_u32(&rng) % (6 * HOSTS * PER_VIEW));
        double until = co_now_s() + 20;
        prepare(view, &rng);
        for (int i = 0; whole ? moves_left() > 0 : i < moves; i++) {
            CHECK(co_now_s() < until, "view %u hangs, %d moves left", view, moves_left());
            one_move(view, &rng);
            if (test_u32(&rng) % 8 == 0) {
                scene_turn(&scene);
                for (int h = 0; h < HOSTS; h++)
                    take_reports(h, &seen[h], view);
            }
        }
        leave(view, seen, &rng);
        for (int h = 0; h < HOSTS; h++)
            seen[h] = scene.host[h].n_done = 0;
    }
    for (int h = 0; h < HOSTS; h++)
        CHECK(scene.host[h].n_lost == 0, "host %d lost one: %s%s%s", h, scene.host[h].why[0],
              scene.host[h].why[1], scene.host[h].why[2]);
    scene_close(&scene);
}

TEST(random_messages_and_cuts_over_tcp_agree_with_the_model)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        walk(seed, false, 8);
        walk(seed + 100, true, 8);
    }
}

TEST_LONG(many_random_messages_and_cuts_over_tcp_agree_with_the_model)
{
    for (uint64_t seed = 1000; seed < 1060; seed++)
        walk(seed, seed & 1, 25);
}
