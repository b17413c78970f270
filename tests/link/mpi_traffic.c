/* mpi_traffic.c -- the parts of mpi_part.h: random messages between all hosts; views that are cut; a host
 * that leaves. Every host knows what every other sends: lengths and bytes are functions of sender,
 * receiver, view and number.
 */
#include "link/mpi_part.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

enum { MESSAGES = 150, MOST = 3 << 20, HUGE_LEN = (64 << 20) + 5 };

static uint64_t seed_of(int from, int to, uint32_t view, int i)
{
    return ((uint64_t)view << 32) + (uint64_t)i * 64 + (uint64_t)from * 8 + (uint64_t)to;
}

/* Short ones, long ones, and those about the limit between them. */
static size_t len_of(int from, int to, uint32_t view, int i)
{
    uint64_t random = seed_of(from, to, view, i);
    uint32_t kind = test_u32(&random) % 10, some = test_u32(&random);

    if (view == 1 && from == 0 && i == 77)
        return HUGE_LEN; /* in two pieces */
    return kind < 4   ? some % 300
           : kind < 6 ? (16 << 10) - 2 + some % 5
           : kind < 9 ? some % 100000
                      : some % MOST;
}

static co_tag tag_of(uint32_t view, int i)
{
    return (co_tag){
        .view = view, .unit = (uint32_t)i / 10, .kind = CO_MSG_PIECE, .node = 1, .chunk = (uint32_t)i};
}

struct lane {
    uint8_t *bytes[MESSAGES];
    int begun, ended;    /* sent or posted; reported */
    int order[MESSAGES]; /* in which receives are posted */
};
struct traffic {
    uint32_t view;
    int messages;
    struct lane out[PART_HOSTS], in[PART_HOSTS];
};

static void check_bytes(const struct part *part, const uint8_t *bytes, int from, uint32_t view, int i)
{
    size_t len = len_of(from, part->me, view, i);
    uint8_t *want = malloc(len + 1);

    part_fill(want, len, seed_of(from, part->me, view, i));
    PART_CHECK(part, memcmp(bytes, want, len) == 0, "view %u, message %d from %d has other bytes", view, i,
               from);
    free(want);
}

static void took(struct part *part, bool sent, int peer, const co_tag *tag)
{
    struct traffic *t = part->ctx;
    struct lane *lane = sent ? &t->out[peer] : &t->in[peer];
    int i = lane->ended++;
    co_tag want = tag_of(t->view, i);

    PART_CHECK(part, co_tag_same(tag, &want), "%s %d: view %u, message %u instead of view %u, message %d",
               sent ? "to" : "from", peer, tag->view, tag->chunk, t->view, i);
    if (!sent)
        check_bytes(part, lane->bytes[i], peer, t->view, i);
}

/* Receives are posted in another order than that of the messages, in groups of up to eight. */
static void shuffle(struct part *part, struct lane *lane, int n)
{
    for (int i = 0; i < n; i++)
        lane->order[i] = i;
    for (int from = 0; from < n; from += 8)
        for (int i = from; i < from + 8 && i < n; i++) {
            int most = from + 8 < n ? 8 : n - from, j = from + (int)(test_u32(&part->random) % (uint32_t)most);
            int x = lane->order[i];
            lane->order[i] = lane->order[j];
            lane->order[j] = x;
        }
}

static void prepare(struct part *part, struct traffic *t, uint32_t view, int messages)
{
    t->view = view;
    t->messages = messages;
    for (int h = 0; h < part->hosts; h++) {
        struct lane *out = &t->out[h], *in = &t->in[h];
        out->begun = out->ended = in->begun = in->ended = 0;
        shuffle(part, in, messages);
        for (int i = 0; i < messages && h != part->me; i++) {
            size_t len = len_of(part->me, h, view, i);
            out->bytes[i] = realloc(out->bytes[i], len + 1);
            in->bytes[i] = realloc(in->bytes[i], len_of(h, part->me, view, i) + 1);
            part_fill(out->bytes[i], len, seed_of(part->me, h, view, i));
        }
    }
}

/* Some sends and some posts, now and then. */
static void act(struct part *part, struct traffic *t)
{
    for (int h = 0; h < part->hosts; h++) {
        struct lane *out = &t->out[h], *in = &t->in[h];
        if (h == part->me)
            continue;
        for (int n = (int)(test_u32(&part->random) % 8); n-- > 0 && out->begun < t->messages; out->begun++) {
            co_tag tag = tag_of(t->view, out->begun);
            PART_CHECK(part,
                       !co_link_send(part->link, h, &tag, out->bytes[out->begun],
                                     len_of(part->me, h, t->view, out->begun)),
                       "%s", co_errmsg());
        }
        for (int n = (int)(test_u32(&part->random) % 8); n-- > 0 && in->begun < t->messages; in->begun++) {
            int i = in->order[in->begun];
            co_tag tag = tag_of(t->view, i);
            PART_CHECK(part, !co_link_post(part->link, h, &tag, in->bytes[i], len_of(h, part->me, t->view, i)),
                       "%s", co_errmsg());
        }
    }
}

static bool all_over(const struct part *part, const struct traffic *t)
{
    for (int h = 0; h < part->hosts; h++)
        if (h != part->me && (t->out[h].ended < t->messages || t->in[h].ended < t->messages))
            return false;
    return true;
}

/* A host may close its link when it has sent and received everything. */
static void check_lost(const struct part *part, const struct traffic *t)
{
    for (int h = 0; h < part->hosts; h++)
        PART_CHECK(part, !(part->lost >> h & 1) || t->in[h].ended == t->messages, "lost host %d: %s", h,
                   part->why);
}

static void run_to_the_end(struct part *part, struct traffic *t)
{
    double until = co_now_s() + 50;

    while (!all_over(part, t)) {
        int h = (part->me + 1) % part->hosts;
        PART_CHECK(part, co_now_s() < until, "view %u stands: %d of %d sent to %d, %d received", t->view,
                   t->out[h].ended, t->messages, h, t->in[h].ended);
        act(part, t);
        part_turn(part);
        check_lost(part, t);
    }
}

static struct traffic traffic;

void part_traffic(struct part *part)
{
    uint64_t sent = 0, got = 0;

    part->done = took;
    part->ctx = &traffic;
    part_open(part);
    prepare(part, &traffic, 1, MESSAGES);
    run_to_the_end(part, &traffic);
    for (int h = 0; h < part->hosts; h++)
        for (int i = 0; i < MESSAGES && h != part->me; i++) {
            sent += len_of(part->me, h, 1, i);
            got += len_of(h, part->me, 1, i);
        }
    co_link_counts counts = co_link_count(part->link);
    PART_CHECK(part, counts.payload_sent == sent && counts.payload_got == got, "payload is counted wrongly");
    PART_CHECK(part,
               counts.wire_sent > sent && counts.wire_sent < sent + 100 * MESSAGES * PART_HOSTS &&
                   counts.wire_got > got,
               "the wire is counted wrongly");
    co_link_close(part->link);
}

/* --- cutting -------------------------------------------------------------------------------------------- */
enum { VIEWS = 30, IN_A_VIEW = 25 };

/* The hash of all memory of receives, which nothing may change after a cut. */
static uint64_t hash_in(const struct part *part, const struct traffic *t)
{
    uint64_t hash = 0;

    for (int h = 0; h < part->hosts; h++)
        for (int i = 0; i < t->messages && h != part->me; i++)
            for (size_t k = 0, len = len_of(h, part->me, t->view, i); k < len; k++)
                hash = hash * 31 + t->in[h].bytes[i][k];
    return hash;
}

/* What was sent may change after the cut; nobody may receive that. */
static void scribble(const struct part *part, const struct traffic *t)
{
    for (int h = 0; h < part->hosts; h++)
        for (int i = 0; i < t->messages && h != part->me; i++)
            memset(t->out[h].bytes[i], 0xee, len_of(part->me, h, t->view, i));
}

void part_views(struct part *part)
{
    static struct traffic both[2];
    uint64_t hash[2] = {0};

    part->done = took;
    part_open(part);
    for (uint32_t view = 2; view < 2 + VIEWS; view++) {
        struct traffic *t = part->ctx = &both[view & 1];
        if (view > 3)
            PART_CHECK(part, hash_in(part, t) == hash[view & 1], "bytes landed after the cut of view %u",
                       view - 2);
        co_link_cut(part->link, view);
        prepare(part, t, view, IN_A_VIEW);
        for (int turns = (int)(test_u32(&part->random) % 40); turns-- > 0 && !all_over(part, t);) {
            act(part, t);
            part_turn(part);
        }
        co_link_cut(part->link, view + 1);
        scribble(part, t);
        hash[view & 1] = hash_in(part, t);
        PART_CHECK(part, !part->lost, "lost %x: %s", (unsigned)part->lost, part->why);
    }
    part->ctx = &traffic;
    prepare(part, &traffic, 2 + VIEWS, IN_A_VIEW); /* all is well after so many cuts */
    run_to_the_end(part, &traffic);
    co_link_close(part->link);
}

/* --- leaving -------------------------------------------------------------------------------------------- */
static void say_one_thing(struct part *part)
{
    co_tag tag = tag_of(1, 0);

    for (int h = 0; h < part->me; h++)
        co_link_send(part->link, h, &tag, traffic.out[h].bytes[0], len_of(part->me, h, 1, 0));
    for (int h = 0; h < part->me; h++)
        while (traffic.out[h].ended == 0)
            part_turn(part);
}

static void hear_it_late(struct part *part, int last)
{
    co_tag tag = tag_of(1, 0);
    double until = co_now_s() + 30;

    for (int i = 0; i < 100; i++)
        part_turn(part);
    PART_CHECK(part, !(part->lost & 1 << last), "lost before its last message was taken");
    co_link_post(part->link, last, &tag, traffic.in[last].bytes[0], len_of(last, part->me, 1, 0));
    while (!(part->lost & 1 << last) && co_now_s() < until)
        part_turn(part);
    PART_CHECK(part, part->lost & 1 << last && traffic.in[last].ended == 1, "lost %x after %d messages",
               (unsigned)part->lost, traffic.in[last].ended);
    PART_CHECK(part, strstr(part->why, "has closed its link"), "%s", part->why);
    PART_CHECK(part, !co_link_send(part->link, last, &tag, "", 1), "a send to it is not given up quietly");
}

/* The last host sends a message and closes its link. The others get the message first and then the news. */
void part_leave(struct part *part)
{
    int last = part->hosts - 1;

    part->done = took;
    part->ctx = &traffic;
    prepare(part, &traffic, 1, 1);
    part_open(part);
    if (part->me == last)
        say_one_thing(part);
    else
        hear_it_late(part, last);
    co_link_close(part->link);
}

/* --- a host that hangs ---------------------------------------------------------------------------------- */
/* Host 1 announces a long message and stops. Host 0 waits for its bytes when it cuts the view. It gives up,
 * and every later turn fails. */
void part_stall(struct part *part)
{
    static uint8_t bytes[1 << 20];
    co_tag tag = tag_of(1, 0);
    FILE *f;
    int pid = 0, peer;

    part->done = took;
    part->ctx = &traffic;
    part_open(part);
    if (part->me == 1) {
        co_link_send(part->link, 0, &tag, bytes, sizeof bytes);
        while (co_link_count(part->link).wire_sent == 0)
            co_link_turn(part->link, 0);
        f = fopen("stopped.new", "w");
        PART_CHECK(part, f && fprintf(f, "%d", (int)getpid()) > 0 && fclose(f) == 0, "stopped.new");
        rename("stopped.new", "stopped");
        raise(SIGSTOP);
    }
    while (access("stopped", F_OK) != 0)
        part_turn(part);
    co_link_post(part->link, 1, &tag, bytes, sizeof bytes);
    while (co_link_count(part->link).wire_sent == 0) /* until it says go */
        part_turn(part);
    double before = co_now_s();
    co_link_cut(part->link, 2);
    PART_CHECK(part, co_now_s() - before > 4 && co_now_s() - before < 30, "the cut took %.1f s",
               co_now_s() - before);
    PART_CHECK(part,
               co_link_turn(part->link, 0) == CO_EPEER &&
                   strstr(co_errmsg(), "the link mpi is given up: host 1"),
               "%s", co_errmsg());
    PART_CHECK(part, co_link_lost(part->link, &peer, part->why, sizeof part->why) && peer == 1,
               "nobody is lost");
    co_link_close(part->link);
    f = fopen("stopped", "r");
    PART_CHECK(part, f && fscanf(f, "%d", &pid) == 1 && pid > 1 && kill(pid, SIGKILL) == 0, "kill %d", pid);
}
