/* hosts.c -- see hosts.h. */
#include "train/hosts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/maths.h"
#include "comm/link_self.h"
#include "harness.h"
#include "link/links.h"

enum { RANKS_MOST = 4, STACK = 1 << 20, PATIENCE = 200000, TCP_PATIENCE_S = 20 };

struct seat {
    struct rank rank;
    ucontext_t context;
    char *stack;
    uint32_t inc;
    bool alive, over;
};

struct host {
    bool alive, off; /* off: cut off from everybody */
    co_plan *plan;
    co_link *tcp;    /* NULL: the link is self */
    co_link_peer me; /* of tcp */
    int listener;
    uint64_t came; /* bytes that were received */
    struct carrier carrier;
    struct seat seat[RANKS_MOST];
    /* the roster's side */
    bool member, to_freeze, to_view, known; /* known: its position is in */
    bool wants_in, wants_out;
    co_position position;
};

static struct cluster {
    const scene *scene;
    co_wire *wire;
    co_tls *tls;
    uint64_t births;
    double moved_s; /* when a message came last */
    struct host host[HOSTS_MOST];
    ucontext_t loop;
    struct seat *running;
    uint64_t rng;
    long points, still;
    outcome out;
    bool struck[3];
    /* the roster */
    uint32_t view;
    bool changing, wanted;
    int member[HOSTS_MOST], members;
    co_view next;
    char what[160];
} * now;

static uint32_t draw(uint32_t n)
{
    return test_u32(&now->rng) % n;
}

/* --- coroutines ----------------------------------------------------------------------------------------- */
static void yield(void)
{
    struct seat *seat = now->running;

    swapcontext(&seat->context, &now->loop);
}

static struct host *host_of(const struct rank *rank)
{
    for (int h = 0; h < HOSTS_MOST; h++)
        if (now->host[h].alive && now->host[h].plan->regions == rank->regions)
            return &now->host[h];
    return NULL;
}

/* A place where a death makes a difference. */
static void point(struct rank *rank)
{
    const scene *s = now->scene;

    now->points++;
    for (int i = 0; i < 3; i++)
        if (s->plan[i].what == RANK_DIES && !now->struck[i] && s->plan[i].when &&
            now->points >= s->plan[i].when && host_of(rank) == &now->host[s->plan[i].host]) {
            now->struck[i] = true;
            now->running->alive = false;
            yield(); /* for ever */
        }
    if (draw(4) == 0)
        yield();
}

static void pause_rank(struct rank *rank)
{
    (void)rank;
    yield();
}

static void live(void)
{
    rank_loop(&now->running->rank);
    now->running->over = true;
    yield();
}

static void seat_start(struct host *host, int slot)
{
    struct seat *seat = &host->seat[slot];

    CHECK_OK(rank_open(&seat->rank, host->plan, host->plan->regions, slot, seat->inc++, -1));
    seat->rank.point = point;
    seat->rank.pause = pause_rank;
    seat->alive = true;
    seat->over = false;
    getcontext(&seat->context);
    seat->context.uc_stack.ss_sp = seat->stack;
    seat->context.uc_stack.ss_size = STACK;
    seat->context.uc_link = NULL;
    makecontext(&seat->context, live, 0);
}

/* --- hosts ---------------------------------------------------------------------------------------------- */
/* What a newcomer has is garbage: all of it must be given. Padding between entries is zero everywhere. */
static void spoil(struct host *host)
{
    const co_layout *layout = host->plan->layout;
    struct regions *regions = host->plan->regions;

    for (int i = 0; i < layout->n; i++)
        for (int part = 0; part <= host->plan->moments; part++)
            memset((part ? regions->moment[part - 1] : regions->state) + layout->entry[i].offset, 0x7f,
                   layout->entry[i].count * sizeof(float));
    host->carrier.fresh = true;
}

static void open_tcp(struct host *host, int h)
{
    CHECK_OK(co_net_listen(&host->listener, "127.0.0.1", 0));
    co_addr at = co_net_local(host->listener);
    host->me = (co_link_peer){.id = h, .birth = ++now->births, .host = "127.0.0.1", .port = co_addr_port(&at)};
    co_link_spec spec = {
        .me = h, .birth = host->me.birth, .run = 1, .listener = host->listener, .tls = now->tls};
    CHECK_OK(co_link_tcp(&host->tcp, &spec));
}

/* The members of the next view, for the link of one of them. */
static void meet(struct host *host)
{
    co_link_peer peers[HOSTS_MOST];

    for (int i = 0; i < now->members; i++)
        peers[i] = now->host[now->member[i]].me;
    if (host->tcp)
        CHECK_OK(co_link_meet(host->tcp, peers, now->members));
}

static void host_start(int h, bool fresh)
{
    struct host *host = &now->host[h];
    co_link *link;

    *host = (struct host){.alive = true, .plan = stage_plan(now->scene->stage)};
    struct regions *regions = host->plan->regions;
    if (host->plan->group.most) /* slices that go backward together: not the same number everywhere */
        host->plan->group.first =
            (int)((now->scene->seed + (uint64_t)h) % (uint64_t)(host->plan->group.most + 1));
    CHECK_OK(co_wire_end(now->wire, h, &link));
    if (now->scene->tcp) {
        open_tcp(host, h);
        link = host->tcp;
    }
    CHECK_OK(carrier_open(&host->carrier, host->plan, regions, link));
    if (fresh)
        spoil(host);
    atomic_fetch_or(&regions->ctl->pc, PC_FROZEN); /* until the first view */
    host->carrier.frozen = true;
    for (int slot = 0; slot < host->plan->ranks; slot++) {
        host->seat[slot].stack =
            mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        seat_start(host, slot);
    }
}

static void host_end(int h)
{
    struct host *host = &now->host[h];

    if (!host->alive)
        return;
    co_wire_drop(now->wire, h);
    if (host->tcp) {
        co_link_close(host->tcp);
        close(host->listener);
        host->tcp = NULL;
    }
    for (int slot = 0; slot < host->plan->ranks; slot++) {
        rank_close(&host->seat[slot].rank);
        munmap(host->seat[slot].stack, STACK);
    }
    carrier_close(&host->carrier);
    co_plan_free(host->plan);
    host->alive = false;
}

static bool host_is_over(const struct host *host)
{
    for (int slot = 0; slot < host->plan->ranks; slot++)
        if (!host->seat[slot].over)
            return false;
    return true;
}

/* --- the roster ----------------------------------------------------------------------------------------- */
static void begin_change(void)
{
    now->changing = true;
    now->wanted = false;
    now->view++;
    now->members = 0;
    for (int h = 0; h < HOSTS_MOST; h++) {
        struct host *host = &now->host[h];
        bool in = host->alive && !host->off && !host->wants_out && (host->member || host->wants_in);
        host->to_view = host->known = false;
        host->to_freeze = in;
        if (in)
            now->member[now->members++] = h;
    }
}

/* A member is gone, a host wants to come or go, or a newcomer is whole. */
static bool change_is_due(void)
{
    for (int h = 0; h < HOSTS_MOST; h++) {
        const struct host *host = &now->host[h];
        if (host->member && (!host->alive || host->off || host->wants_out))
            return true;
        if (host->alive && !host->off && host->wants_in && !host->member)
            return true;
        if (host->alive && host->member && !now->changing && host->plan->regions->deal->view == now->view &&
            carrier_is_whole(&host->carrier) &&
            !(host->plan->regions->deal->whole >> host->plan->regions->deal->me & 1))
            return true;
    }
    return false;
}

static bool all_known(void)
{
    for (int i = 0; i < now->members; i++)
        if (!now->host[now->member[i]].known)
            return false;
    return now->members > 0;
}

/* Those that cannot be in the view are sent away. */
static bool send_unfit_away(void)
{
    co_position at[HOSTS_MOST];

    for (int i = 0; i < now->members; i++)
        at[i] = now->host[now->member[i]].position;
    uint64_t out = co_view_unfit(now->members, at);
    for (int i = 0; i < now->members; i++)
        if (out >> i & 1) {
            host_end(now->member[i]);
            now->host[now->member[i]] = (struct host){0};
        }
    return out != 0;
}

static void decide_view(void)
{
    co_position at[HOSTS_MOST];
    int weight[HOSTS_MOST];
    uint8_t id[HOSTS_MOST];

    for (int i = 0; i < now->members; i++) {
        at[i] = now->host[now->member[i]].position;
        id[i] = (uint8_t)now->member[i];
        weight[i] = now->scene->weight[now->member[i]];
    }
    CHECK_OK(co_view_decide(&now->next, now->view, now->members, id, at, weight,
                            now->scene->stage->cfg.slices ? (int)now->scene->stage->cfg.slices
                                                          : now->host[id[0]].plan->slices));
    now->out.views++;
    for (int h = 0; h < HOSTS_MOST; h++)
        now->host[h].member = false;
    for (int i = 0; i < now->members; i++) {
        struct host *host = &now->host[now->member[i]];
        host->member = host->to_view = true;
        host->wants_in = false;
        now->out.given += now->next.giver[i] >= 0;
        now->out.newcomers += at[i].fresh;
    }
    now->changing = false;
}

/* The roster, or an order of it that reaches a host. */
static void roster_turn(void)
{
    int h = (int)draw(HOSTS_MOST);
    struct host *host = &now->host[h];

    if (change_is_due() && (!now->changing || draw(8) == 0)) {
        bool gone = !now->changing;
        for (int i = 0; i < now->members; i++)
            gone = gone || !now->host[now->member[i]].alive || now->host[now->member[i]].off;
        for (int k = 0; k < HOSTS_MOST; k++)
            gone = gone || (now->host[k].alive && now->host[k].wants_in && !now->host[k].to_freeze &&
                            !now->host[k].known);
        if (gone) {
            begin_change();
            return;
        }
    }
    if (!host->alive || host->off)
        return;
    if (host->to_freeze && draw(3) == 0) {
        host->to_freeze = false;
        host->position = carrier_freeze(&host->carrier, now->view);
        host->known = true;
        now->points++;
        now->still = 0;
    } else if (host->to_view && draw(3) == 0) {
        host->to_view = false;
        meet(host);
        for (int i = 0; i < now->members; i++)
            if (now->member[i] == h)
                CHECK_OK(carrier_view(&host->carrier, &now->next, i));
        now->points++;
        now->still = 0;
    }
    int least = now->scene->min > 1 ? now->scene->min : 1;
    if (!now->changing || !all_known() || now->members < least)
        return;
    if (send_unfit_away())
        begin_change();
    else
        decide_view();
}

/* --- accidents ------------------------------------------------------------------------------------------ */
static void strike(int i)
{
    const scene *s = now->scene;
    int h = s->plan[i].host;
    struct host *host = &now->host[h];

    now->struck[i] = true;
    switch (s->plan[i].what) {
    case HOST_DIES:
        host_end(h);
        break;
    case HOST_CUT_OFF:
        host->off = true;
        co_wire_cut_off(now->wire, h, true);
        break;
    case HOST_JOINS:
        host_end(h); /* one that was cut off comes back with nothing */
        host_start(h, true);
        host->wants_in = true;
        break;
    case HOST_LEAVES:
        host->wants_out = true;
        break;
    case STOP_WISHED:
        atomic_store(&host->plan->regions->ctl->stop_request, 1);
        break;
    case NOTHING:
    case RANK_DIES:
        break;
    }
}

/* Too few members are left: nothing moves until somebody comes. */
static bool everybody_waits(void)
{
    return now->changing && now->members < now->scene->min && all_known() && now->still > 1000;
}

static void accidents(void)
{
    const scene *s = now->scene;

    for (int i = 0; i < 3; i++)
        if (s->plan[i].what > RANK_DIES && !now->struck[i] &&
            (now->points >= s->plan[i].when || (s->plan[i].what == HOST_JOINS && everybody_waits())))
            strike(i);
}

/* --- the loop ------------------------------------------------------------------------------------------- */
static void run_seat(struct host *host)
{
    int slot = (int)draw((uint32_t)host->plan->ranks);
    struct seat *seat = &host->seat[slot];

    if (seat->over)
        return;
    if (!seat->alive) {
        rank_close(&seat->rank);
        seat_start(host, slot);
        return;
    }
    now->running = seat;
    swapcontext(&now->loop, &seat->context);
}

static void attend(struct host *host)
{
    char what[200];

    snprintf(what, sizeof what, "%s: host %d", now->what, (int)(host - now->host));
    stage_attend(now->scene->course, host->plan, what);
}

/* A message that came over tcp is a point, as one that `self` delivers. A loss is no news: the roster knows
 * who died.
 */
static void watch_tcp(struct host *host)
{
    uint64_t came = host->tcp ? co_link_count(host->tcp).payload_got : 0;
    char why[400];
    int peer;

    if (came != host->came) {
        now->points++;
        now->still = 0;
        now->moved_s = co_now_s();
    }
    host->came = came;
    while (host->tcp && co_link_lost(host->tcp, &peer, why, sizeof why))
        CHECK(!now->host[peer].member || !now->host[peer].alive || now->host[peer].off || host->off ||
                  !host->member || change_is_due() || now->changing,
              "%s: %s", now->what, why);
}

static bool hangs(void)
{
    return now->still > PATIENCE && (!now->scene->tcp || co_now_s() - now->moved_s > TCP_PATIENCE_S);
}

static void turn(void)
{
    struct host *host = &now->host[draw(HOSTS_MOST)];
    int ready;

    accidents();
    roster_turn();
    if (host->alive) {
        run_seat(host);
        if (host->alive && draw(2)) {
            CHECK_OK(carrier_turn(&host->carrier));
            watch_tcp(host);
            attend(host);
        }
    }
    if ((ready = co_wire_ready(now->wire)) > 0) {
        co_wire_deliver(now->wire, (int)draw((uint32_t)ready));
        now->points++;
        now->still = 0;
    }
}

static bool all_over(void)
{
    if (now->changing || change_is_due())
        return false;
    for (int h = 0; h < HOSTS_MOST; h++)
        if (now->host[h].member && (now->host[h].to_view || !host_is_over(&now->host[h])))
            return false;
    return true;
}

static void check_member(int h, int64_t *steps)
{
    struct host *host = &now->host[h];
    const control *ctl = host->plan->regions->ctl;
    uint64_t pc = atomic_load(&ctl->pc);
    struct run run = {.plan = host->plan, .regions = host->plan->regions};
    char what[200];

    snprintf(what, sizeof what, "%s: host %d", now->what, h);
    attend(host);
    int64_t done = pc_unit(pc) <= host->plan->units.first_unit ? 0 : steps_done(&run);
    CHECK(*steps < 0 || *steps == done, "%s: ended after step %lld, others after %lld", what, (long long)done,
          (long long)*steps);
    *steps = done;
    CHECK(!(pc & PC_FAIL), "%s: failed", what);
    if (carrier_is_whole(&host->carrier))
        course_check_state(now->scene->course, host->plan, done, what);
}

/* For the reader of a failed test. */
static void say_where(void)
{
    for (int h = 0; h < HOSTS_MOST; h++) {
        const struct host *host = &now->host[h];
        if (!host->alive)
            continue;
        uint64_t pc = atomic_load(&host->plan->regions->ctl->pc);
        const co_deal *deal = host->plan->regions->deal;
        printf("host %d: member %d, unit %u, redeals %u, flags %x, over %d, deal of view %u with %d hosts, "
               "me %d, whole "
               "%llx; frozen %d, changing %d, taking %d, missing %d, fed %zu, orders %d %d, known %d\n",
               h, host->member, pc_unit(pc), pc_redeals(pc), (unsigned)(pc & 0xff), host_is_over(host),
               deal->view, deal->hosts, deal->me, (unsigned long long)deal->whole, host->carrier.frozen,
               host->carrier.changing, host->carrier.taking, host->carrier.missing, host->carrier.fed,
               host->to_freeze, host->to_view, host->known);
    }
    printf("roster: view %u, changing %d, members %d\n", now->view, now->changing, now->members);
}

static const char *name_of(accident what)
{
    static const char *const names[] = {"nothing",      "a rank dies",   "a host dies", "a host is cut off",
                                        "a host joins", "a host leaves", "a stop"};
    return names[what];
}

outcome hosts_run(const scene *s)
{
    static struct cluster cluster;
    int64_t steps = -1;

    memset(&cluster, 0, sizeof cluster);
    now = &cluster;
    now->scene = s;
    now->rng = s->seed * 2654435761u + 12345;
    snprintf(now->what, sizeof now->what, "%d hosts x %d, %s of host %d at %ld, %s at %ld, seed %llu",
             s->hosts, s->ranks, name_of(s->plan[0].what), s->plan[0].host, s->plan[0].when,
             name_of(s->plan[1].what), s->plan[1].when, (unsigned long long)s->seed);
    co_fpu_init();
    CHECK_OK(co_wire_new(&now->wire, HOSTS_MOST));
    now->moved_s = co_now_s();
    if (s->tcp)
        CHECK_OK(co_tls_new(&now->tls, &(co_token){{1, 2, 3}}, "hosts"));
    for (int h = 0; h < s->hosts; h++) {
        host_start(h, false);
        now->host[h].wants_in = true;
    }
    while (!all_over()) {
        turn();
        now->still++;
        if (hangs())
            say_where();
        CHECK(!hangs(), "%s: hangs at point %ld, view %u", now->what, now->points, now->view);
    }
    for (int h = 0; h < HOSTS_MOST; h++)
        if (now->host[h].member)
            check_member(h, &steps);
    for (int h = 0; h < HOSTS_MOST; h++)
        host_end(h);
    co_wire_free(now->wire);
    co_tls_free(now->tls);
    now->out.points = now->points;
    now->out.steps = steps;
    return now->out;
}
