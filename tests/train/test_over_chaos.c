/* Chaos: schedules of accidents made from a seed. Hosts are killed, stopped and continued, cut off and
 * connected again, they join; ranks and carriers are killed; cables get slow. The host that keeps the roster
 * stays (there is no etcd here), but its ranks and its carrier do not, and its cable may be cut for a moment
 * or slow. Each run ends with the weights of an undisturbed one, nothing hangs, no process is left, and the
 * first host reports every step once.
 *
 * Hosts are namespaces, where the tests may make them. Elsewhere they share the loopback, a cut host is a
 * stopped one, and no cable is slow. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "net/ns.h"
#include "train/over.h"

enum { MOST = 4, STEPS = 46, LOST_MS = 1000 };

/* --- a schedule ----------------------------------------------------------------------------------------- */
typedef struct schedule {
    over_scene scene;
    uint64_t rng;
    int events, next;       /* the number of the next host that joins */
    int views;              /* of the first host, at most */
    unsigned here;          /* hosts that are expected to end with the weights */
    unsigned left;          /* hosts that end with 75, or late */
    int killed[OVER_HOSTS]; /* carriers and ranks of each */
} schedule;

static int below(schedule *s, int n)
{
    return (int)(test_u32(&s->rng) % (uint32_t)n);
}

static int count(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* One of the hosts that are here; without the first one: -1 if there is no other. */
static int somebody(schedule *s, bool also_first)
{
    unsigned among = also_first ? s->here : s->here & ~1u;
    int n = among ? below(s, count(among)) : -1;

    for (int h = 0; h < OVER_HOSTS && n >= 0; h++)
        if (among >> h & 1 && n-- == 0)
            return h;
    return -1;
}

static void add(schedule *s, over_what what, int host, int64_t after, int ms)
{
    int rank = below(s, s->scene.ranks);

    s->scene.event[s->events].what = what;
    s->scene.event[s->events].host = host;
    s->scene.event[s->events].after = after;
    s->scene.event[s->events].ms = ms;
    s->scene.event[s->events++].rank = rank;
}

static void add_random(schedule *s, int64_t after)
{
    int what = below(s, 12), h;

    if (what <= 1 && (h = somebody(s, false)) > 0) {
        add(s, what ? OVER_KILL : OVER_KILL_HEAD, h, after, 0);
        s->here &= ~(1u << h);
        s->views++;
    } else if (what == 2 && (h = somebody(s, false)) > 0) {
        add(s, OVER_PAUSE, h, after, LOST_MS + 400 + below(s, 400));
        s->here &= ~(1u << h);
        s->left |= 1u << h;
        s->views++;
    } else if (what == 3 && (h = somebody(s, false)) > 0) {
        add(s, OVER_PAUSE, h, after, 50 + below(s, 250));
    } else if (what == 4 && (h = somebody(s, true)) >= 0 && s->killed[h]++ < 2) {
        add(s, OVER_KILL_CARRIER, h, after, 0);
        s->views++;
    } else if (what == 5 && (h = somebody(s, true)) >= 0) {
        add(s, OVER_PAUSE_RANK, h, after, 50 + below(s, 400));
    } else if (what == 6 && count(s->here | s->left) < MOST && s->next < OVER_HOSTS) {
        add(s, OVER_JOIN, s->next, after, 0);
        s->here |= 1u << s->next++;
        s->views += 2;
    } else if (what == 7 && (h = somebody(s, false)) > 0) {
        add(s, OVER_CUT, h, after, LOST_MS + 400 + below(s, 400));
        s->here &= ~(1u << h);
        s->left |= 1u << h;
        s->views++;
    } else if (what == 8 && (h = somebody(s, true)) >= 0) {
        add(s, OVER_CUT, h, after, 50 + below(s, 250));
    } else if (what <= 10 && what >= 9 && (h = somebody(s, true)) >= 0) {
        add(s, OVER_SLOW, h, after, 200 + below(s, 500));
    } else if ((h = somebody(s, true)) >= 0 && s->killed[h]++ < 2) {
        add(s, OVER_KILL_RANK, h, after, 0);
    }
}

/* Two to seven accidents, some of them at the same time. */
static schedule schedule_of(int seed)
{
    schedule s = {.rng = (uint64_t)seed * 7919 + 1, .views = 1};
    int64_t after = 1;

    s.scene = (over_scene){.words = over_digits, .most = MOST};
    s.scene.hosts = s.next = 2 + below(&s, 3);
    s.scene.ranks = 1 + below(&s, 2);
    s.here = (1u << s.scene.hosts) - 1;
    for (int i = 2 + below(&s, 6); i > 0; i--) {
        after += below(&s, 7);
        if (after < STEPS / 2)
            add_random(&s, after);
    }
    return s;
}

static const char *text_of(int seed, const schedule *s)
{
    static const char *const name[] = {"nothing",    "kill",      "kill head", "kill rank", "kill carrier",
                                       "stop",       "freeze",    "thaw",      "join",      "pause",
                                       "pause rank", "strangers", "cut",       "slow"};
    static char text[800];
    int at = snprintf(text, sizeof text, "seed %d: %d x %d", seed, s->scene.hosts, s->scene.ranks);

    for (int i = 0; i < s->events; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "; %s h%d after %lld (%d ms, rank %d)",
                       name[s->scene.event[i].what], s->scene.event[i].host,
                       (long long)s->scene.event[i].after, s->scene.event[i].ms, s->scene.event[i].rank);
    return text;
}

/* --- runs ----------------------------------------------------------------------------------------------- */
static struct {
    double recovery_s[100 * OVER_EVENTS];
    int n;
} all;

static void check_host(int seed, const schedule *s, const over_end *end, int h, const char *sha)
{
    bool stays = s->here >> h & 1;

    if (stays)
        CHECK(end->there, "seed %d: host %d is gone", seed, h);
    if (!end->there)
        return;
    if (stays)
        CHECK(!end->err && end->status == CO_STATUS_DONE, "seed %d: host %d after step %lld: status %d, %s",
              seed, h, (long long)end->steps, end->status, end->why);
    if (end->status == CO_STATUS_DONE && !end->err)
        CHECK(strcmp(end->sha, sha) == 0, "seed %d: host %d: %.16s after step %lld, not %.16s", seed, h,
              end->sha, (long long)end->steps, sha);
}

static void run_seed(int seed, const char *sha, const ns_lan *lan)
{
    schedule s = schedule_of(seed);
    over_end end[OVER_HOSTS];
    over_story story;

    s.scene.name = text_of(seed, &s);
    if (getenv("OVER_TALK"))
        test_note("%s", s.scene.name);
    s.scene.story = &story;
    s.scene.lan = lan;
    over_run(&s.scene, end);
    for (int h = 0; h < OVER_HOSTS; h++)
        check_host(seed, &s, &end[h], h, sha);
    CHECK(story.orphans == 0, "seed %d: %d processes were left", seed, story.orphans);
    CHECK(story.reported == end[0].steps && story.reported == STEPS,
          "seed %d: the steps were not reported once and in order (%lld)", seed, (long long)story.reported);
    CHECK(end[0].views - end[0].redeals <= s.views, "seed %d: %d views, at most %d were provoked", seed,
          end[0].views, s.views);
    for (int i = 0; i < story.recoveries; i++)
        all.recovery_s[all.n++] = story.recovery_s[i];
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void run_seeds(int from, int to)
{
    const char *only = getenv("OVER_SEED");
    bool lan_allowed = ns_allowed();
    ns_lan lan;
    char sha[65];

    if (lan_allowed)
        lan = ns_open(OVER_HOSTS);
    else
        test_note("no namespaces here (needs root): cut hosts are stopped ones, and no cable is slow");

    over_alone(over_digits, sha);
    for (int seed = from; seed <= to; seed++)
        if (!only || atoi(only) == seed)
            run_seed(seed, sha, lan_allowed ? &lan : NULL);
    qsort(all.recovery_s, (size_t)all.n, sizeof *all.recovery_s, by_size);
    if (all.n)
        test_note("%d recoveries, to the first step after the accident: median %.2f s, p99 %.2f s", all.n,
                  all.recovery_s[all.n / 2], all.recovery_s[(all.n * 99 + 99) / 100 - 1]);
}

TEST_WITHIN(ten_schedules_of_accidents_lose_no_step_and_change_no_weight, 150)
{
    run_seeds(27, 36); /* every kind of accident, and none of them takes long */
}

TEST_LONG_WITHIN(a_hundred_schedules_of_accidents_lose_no_step_and_change_no_weight, 1200)
{
    run_seeds(1, 100);
}
