/* hosts.c -- see hosts_int.h. */
#include "train/hosts_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/signal.h"
#include "train/timeouts_int.h"

/* --- the carrier process -------------------------------------------------------------------------------- */
static void drop_carrier(struct hosts *hosts)
{
    if (hosts->socket >= 0)
        close(hosts->socket);
    hosts->socket = -1;
}

static co_err start_carrier(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    const co_train_hosts *given = super->run.hosts;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return co_fail(CO_EIO, "socketpair: %m");
    hosts->carry = (struct carry){.run = &super->run, .id = hosts->id, .socket = ends[1]};
    co_child_spec spec = {.main = carry_main, .ctx = &hosts->carry, .keep = super->run.plan->data->fds};
    co_fds_add(&spec.keep, ends[1]);
    co_fds_add(&spec.keep, given->listener);
    co_fds_add(&spec.keep, co_link_inherits((co_link_kind)given->link));
    co_fds_add(&spec.keep, super->run.regions->ctl->event.fd);
    co_err err = child_start(&hosts->child, &spec);
    close(ends[1]);
    hosts->socket = ends[0];
    if (err)
        drop_carrier(hosts);
    return err;
}

static void order(struct hosts *hosts, const struct order *what)
{
    ssize_t n = hosts->socket >= 0 ? send(hosts->socket, what, sizeof *what, MSG_NOSIGNAL) : 0;

    (void)n; /* a carrier that is gone is replaced, and the members change their view again */
}

static void order_freeze(struct hosts *hosts, uint32_t number)
{
    order(hosts, &(struct order){.kind = ORDER_FREEZE, .number = number});
}

/* Under mpi no host can be replaced: what this one has is saved, and the run can be continued. */
static void end_mpi(struct supervisor *super, const char *why)
{
    struct hosts *hosts = &super->hosts;
    char text[400];

    if (hosts->over || hosts->ended)
        return;
    snprintf(text, sizeof text, "the run ends here, saved: %.250s. With trainer.link=tcp it would go on", why);
    run_notice(&super->run, text);
    hosts->over = true;
    hosts->over_ns = co_now_ns();
    hosts->status = CO_EXIT_PREEMPTED;
    order_freeze(hosts, UINT32_MAX);
}

/* A carrier is gone. Its successor knows nothing of the unit under way: the members begin it anew. */
static co_err replace_carrier(struct supervisor *super, int status)
{
    struct hosts *hosts = &super->hosts;
    char text[400];

    drop_carrier(hosts);
    if (hosts->over)
        return CO_OK;
    if (super->run.hosts->link == CO_LINK_MPI) {
        end_mpi(super, *hosts->why ? hosts->why : "the carrier, which talks to the other hosts, is gone");
        return CO_OK;
    }
    if (++hosts->deaths > CARRIER_DEATHS)
        return co_fail(CO_EFAIL, "the carrier, which talks to the other hosts, died %d times: %s",
                       hosts->deaths,
                       *hosts->why ? hosts->why : co_signal_name(WIFSIGNALED(status) ? WTERMSIG(status) : 0));
    if (WIFSIGNALED(status))
        snprintf(text, sizeof text,
                 "the carrier, which talks to the other hosts, was killed by %s; it is replaced",
                 co_signal_name(WTERMSIG(status)));
    else
        snprintf(text, sizeof text, "the carrier, which talks to the other hosts, ended (%s); it is replaced",
                 *hosts->why ? hosts->why : "no reason given");
    run_notice(&super->run, text);
    CO_TRY(start_carrier(super));
    if (hosts->number)
        order_freeze(hosts, hosts->number);
    co_roster_cut(super->run.hosts->roster, hosts->number, hosts->id, text);
    return CO_OK;
}

static co_err attend_carrier(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    int status;

    if (!hosts->child.pid)
        return CO_OK;
    uint64_t beat = atomic_load_explicit(&super->run.regions->ctl->host.beat, memory_order_relaxed);
    bool opens = beat == 0 && super->run.hosts->link == CO_LINK_MPI; /* MPI waits for all processes */
    double stall_s = 1e-3 * (opens ? MPI_OPENS_MS : CARRIER_STALL_MS);
    child_state state = child_turn(&hosts->child, beat, super->run.plan->cfg.stall_s + (opens ? stall_s : 0),
                                   stall_s, &status);
    if (state == CHILD_HELD)
        return co_fail(CO_EFAIL, "the carrier, which talks to the other hosts, was killed and does not exit");
    return state == CHILD_GONE ? replace_carrier(super, status) : CO_OK;
}

/* --- what the carrier reports --------------------------------------------------------------------------- */
static void add_names(const struct hosts *hosts, uint64_t bits, char *out, size_t size)
{
    size_t at = 0;

    for (int h = 0; h < hosts->members; h++)
        if (bits >> h & 1 && at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " and " : "", hosts->name[h]);
}

/* Hosts disagree: a fault of memory or of a CPU. Who is wrong is known if most of them agree. */
static void blame_wrong(struct supervisor *super, const struct report *what)
{
    struct hosts *hosts = &super->hosts;
    co_train_summary *out = super->run.out;
    char names[300] = "", since[200];
    bool all = __builtin_popcountll(what->bits) == hosts->members || hosts->members == 2;

    hosts->wrong = true;
    add_names(hosts, what->bits, names, sizeof names);
    snprintf(since, sizeof since,
             out->saved[0] ? "continue from the last checkpoint that all agreed on: %s"
                           : "no checkpoint was saved yet%s: start again",
             out->saved[0] ? out->saved : "");
    snprintf(out->blame, sizeof out->blame,
             "%s %s %s. A fault of memory or of a CPU: %s. Nothing of this state is saved; %s",
             all ? "hosts" : "host", names,
             what->leaf ? all ? "computed the same slice to different gradients"
                              : "computed a slice to another gradient than the others did"
             : all      ? "hold different weights"
                        : "holds other weights than the others",
             all ? "which of them is wrong, they cannot tell; a third host could"
                 : "leave that host out, and test it",
             since);
}

static void hear_report(struct supervisor *super, const struct report *what)
{
    struct hosts *hosts = &super->hosts;
    co_roster *roster = super->run.hosts->roster;

    switch (what->kind) {
    case REPORT_POSITION:
        if (what->number == hosts->number)
            co_roster_position(roster, what->number, &what->at, hosts->weight);
        break;
    case REPORT_WHOLE:
        co_roster_whole(roster, what->number);
        break;
    case REPORT_CUT:
        if (super->run.hosts->link == CO_LINK_MPI)
            end_mpi(super, what->why);
        else if (what->number == hosts->number)
            co_roster_cut(roster, what->number, what->peer, what->why);
        break;
    case REPORT_WRONG:
        blame_wrong(super, what);
        break;
    case REPORT_FAILED:
        snprintf(hosts->why, sizeof hosts->why, "%s", what->why);
        break;
    }
}

static void hear_carrier(struct supervisor *super)
{
    struct report what;

    while (super->hosts.socket >= 0 &&
           recv(super->hosts.socket, &what, sizeof what, MSG_DONTWAIT) == (ssize_t)sizeof what)
        hear_report(super, &what);
}

/* --- what the roster says ------------------------------------------------------------------------------- */
static co_err begin_freeze(struct supervisor *super, const co_roster_event *event)
{
    struct hosts *hosts = &super->hosts;

    hosts->number = event->number;
    hosts->frozen = true;
    if (!hosts->child.pid) {
        hosts->id = event->id;
        CO_TRY(start_carrier(super));
    }
    order_freeze(hosts, event->number);
    return CO_OK;
}

static void begin_view(struct supervisor *super, const co_roster_view *view)
{
    static struct order what;
    struct hosts *hosts = &super->hosts;

    if (view->view.deal.view != hosts->number)
        return; /* a later FREEZE has come */
    if (super->run.hosts->link == CO_LINK_MPI && hosts->members && view->view.deal.hosts != hosts->members) {
        end_mpi(super, "a host was lost");
        return;
    }
    what = (struct order){
        .kind = ORDER_VIEW, .number = hosts->number, .view = view->view, .peers = view->view.deal.hosts};
    for (int h = 0; h < what.peers; h++) {
        const co_member *member = &view->member[h];
        what.peer[h] = (co_link_peer){.id = member->id, .birth = member->birth, .port = member->port};
        snprintf(what.peer[h].host, sizeof what.peer[h].host, "%s", member->addr);
    }
    hosts->members = what.peers;
    for (int h = 0; h < what.peers; h++)
        snprintf(hosts->name[h], sizeof hosts->name[h], "%.63s", view->member[h].name);
    hosts->frozen = hosts->waits = false;
    hosts->writer = view->view.deal.writer == view->view.deal.me;
    hosts->views++;
    order(hosts, &what);
    if (super->run.hooks->view)
        super->run.hooks->view(super->run.hooks->ctx, view);
    if (hosts->ended)
        co_roster_ended(super->run.hosts->roster, hosts->number);
}

static void be_over(struct supervisor *super, const co_roster_event *event)
{
    struct hosts *hosts = &super->hosts;

    hosts->over = true;
    hosts->over_ns = co_now_ns();
    hosts->status = event->status;
    if (event->text[0])
        run_notice(&super->run, event->text);
    if (!hosts->ended)
        order_freeze(hosts, UINT32_MAX); /* a step that is READY is finished; no other begins */
}

static void talk(const struct supervisor *super, const char *text)
{
    const co_train_hooks *hooks = super->run.hooks;

    if (hooks->talk)
        hooks->talk(hooks->ctx, text);
    else
        run_notice(&super->run, text);
}

static co_err hear_roster(struct supervisor *super)
{
    co_roster_event event;

    for (;;) {
        CO_TRY(co_roster_turn(super->run.hosts->roster, 0, &event));
        switch (event.kind) {
        case CO_ROSTER_FREEZE:
            CO_TRY(begin_freeze(super, &event));
            break;
        case CO_ROSTER_VIEW:
            begin_view(super, event.view);
            co_free(event.view);
            break;
        case CO_ROSTER_OVER:
            be_over(super, &event);
            return CO_OK;
        case CO_ROSTER_WAIT:
            super->hosts.waits = true;
            talk(super, event.text);
            break;
        case CO_ROSTER_TALK:
            talk(super, event.text);
            break;
        case CO_ROSTER_NOTHING:
        case CO_ROSTER_BEGIN:
        case CO_ROSTER_STOP:
            return CO_OK;
        }
    }
}

/* --- how fast this host is ------------------------------------------------------------------------------ */
/* Slices in 1000 s of all ranks together, while they compute. */
static int speed_since(const struct hosts *hosts, uint64_t leaves, uint64_t compute_ns, int ranks)
{
    double seconds = (double)(compute_ns - hosts->compute_ns) * 1e-9;

    return seconds > 0 ? (int)(1000 * (double)(leaves - hosts->leaves) * ranks / seconds) : 0;
}

/* Every WEIGH_MS, if this host has computed: a speed that changed is reported, and the roster may deal anew. */
static void weigh(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    const struct run *run = &super->run;
    uint64_t now = co_now_ns(), leaves = 0, compute_ns = 0;

    if (hosts->weighed_ns && now - hosts->weighed_ns < WEIGH_MS * UINT64_C(1000000))
        return;
    for (int slot = 0; slot < run->plan->ranks; slot++) {
        leaves += atomic_load_explicit(&run->regions->slots[slot].leaves, memory_order_relaxed);
        compute_ns += atomic_load_explicit(&run->regions->slots[slot].compute_ns, memory_order_relaxed);
    }
    int speed = hosts->weighed_ns ? speed_since(hosts, leaves, compute_ns, run->plan->ranks) : 0;
    hosts->weighed_ns = now;
    hosts->leaves = leaves;
    hosts->compute_ns = compute_ns;
    if (speed <= 0)
        return;
    hosts->weight = hosts->weight ? (3 * hosts->weight + speed) / 4 : speed;
    if (!hosts->frozen && hosts->members > 1)
        co_roster_weigh(run->hosts->roster, hosts->number, hosts->weight);
}

/* --- turns ---------------------------------------------------------------------------------------------- */
void hosts_fds(const struct hosts *hosts, struct pollfd fds[HOSTS_FDS])
{
    fds[0] = (struct pollfd){.fd = hosts->roster_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = hosts->socket, .events = POLLIN};
}

bool hosts_writes(const struct supervisor *super)
{
    return !super->run.hosts || super->hosts.writer;
}

/* The step that was READY is finished, and no rank writes what hosts share: the state is whole, or this host never
 * had one. */
static bool is_settled(const struct supervisor *super)
{
    const struct regions *regions = super->run.regions;
    uint64_t pc = atomic_load(&regions->ctl->pc);

    if (pc & (PC_STOP | PC_END | PC_FAIL) || !super->hosts.child.pid)
        return true;
    return pc_is_frozen(pc) || co_now_ns() - super->hosts.over_ns > SETTLE_MS * UINT64_C(1000000);
}

/* A request to stop travels with a step. If no step is under way, because hosts are missing, this host leaves. */
static void leave_if_asked(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    bool idle = hosts->views == 0 || hosts->waits;
    int least = super->run.hosts->elastic_min;

    super->stop.may_leave = least > 0 && hosts->members > least && !co_roster_keeps(super->run.hosts->roster);
    if (!super->stop.asked_ns || !(idle || super->stop.leaves) || hosts->leaving || hosts->over)
        return;
    hosts->leaving = true;
    co_roster_leave(super->run.hosts->roster,
                    &(co_leave){.status = CO_EXIT_PREEMPTED, .text = "asked to stop"});
}

co_err hosts_turn(struct supervisor *super)
{
    if (!super->run.hosts)
        return CO_OK;
    leave_if_asked(super);
    hear_carrier(super);
    if (super->hosts.wrong && !super->hosts.ended)
        return co_fail(CO_EFAIL, "%s", super->run.out->blame);
    CO_TRY(attend_carrier(super));
    if (!super->hosts.over)
        CO_TRY(hear_roster(super));
    weigh(super);
    return super->hosts.over && is_settled(super) ? CO_ESTOP : CO_OK;
}

/* --- opening and closing -------------------------------------------------------------------------------- */
/* Equal numbers are equal states. */
static uint64_t number_of_state(const struct run *run)
{
    const co_layout *layout = run->plan->layout;
    uint64_t number = 0;

    for (int part = 0; part <= run->plan->moments; part++)
        number = number * 31 + co_fnv1a64(state_part(run->regions, part), layout->count * sizeof(float));
    return number;
}

co_err hosts_open(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    control *ctl = super->run.regions->ctl;

    if (!super->run.hosts)
        return CO_OK;
    hosts->roster_fd = co_roster_fd(super->run.hosts->roster);
    ctl->event.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ctl->event.fd < 0)
        return co_fail(CO_EIO, "eventfd: %m");
    atomic_store(&ctl->host.start, number_of_state(&super->run));
    atomic_store(&ctl->host.whole, 1);
    atomic_fetch_or(&ctl->pc, PC_FROZEN); /* until the first view */
    return CO_OK;
}

void hosts_close(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    int status;

    if (!super->run.hosts)
        return;
    drop_carrier(hosts); /* the carrier takes it as the order to end */
    while (hosts->child.pid && child_turn(&hosts->child, 0, 1, 1e-3 * CARRIER_ENDS_MS, &status) == CHILD_RUNS)
        poll(&(struct pollfd){.fd = hosts->child.pidfd, .events = POLLIN}, 1, CO_TURN_MS);
    if (super->run.regions && super->run.regions->ctl->event.fd > 0)
        close(super->run.regions->ctl->event.fd);
}

/* --- the end -------------------------------------------------------------------------------------------- */
bool hosts_were_left(struct supervisor *super)
{
    const co_train_hooks *hooks = super->run.hooks;

    if (!super->run.hosts || !super->hosts.over || super->hosts.ended || super->hosts.status == 0 ||
        super->stop.leaves)
        return false;
    return super->stop.asked_ns || !hooks->comes_back || !hooks->comes_back(hooks->ctx);
}

void hosts_stay(struct supervisor *super, bool saved)
{
    struct hosts *hosts = &super->hosts;

    uint64_t until = hosts->wrong ? co_now_ns() + WRONG_MS * UINT64_C(1000000) : UINT64_MAX;

    if (!super->run.hosts || hosts->over)
        return;
    hosts->ended = true;
    hosts->saved = saved || hosts->wrong; /* a state that is wrong is not saved */
    if (!hosts->frozen)
        co_roster_ended(super->run.hosts->roster, hosts->number);
    while (!hosts->over && !super->stop.at_once && co_now_ns() < until) {
        struct pollfd fds[HOSTS_FDS + 1];
        hosts_fds(hosts, fds);
        fds[HOSTS_FDS] = (struct pollfd){.fd = super->stop.signals, .events = POLLIN};
        poll(fds, HOSTS_FDS + 1, CO_TURN_MS);
        stop_turn(&super->run, &super->stop);
        if (hosts_turn(super) != CO_OK)
            return;
        if (hosts->writer && !hosts->saved)
            hosts->saved = save_last(&super->saver, &super->stop, super->run.out->steps) == CO_OK;
    }
}

void hosts_close_books(struct supervisor *super)
{
    const struct run *run = &super->run;
    co_train_summary *out = run->out;

    out->split = (co_time_split){0};
    for (int slot = 0; slot < run->plan->ranks; slot++) {
        const rank_slot *from = &run->regions->slots[slot];
        out->split.input_s += 1e-9 * (double)atomic_load(&from->wait_ns);
        out->split.compute_s += 1e-9 * (double)atomic_load(&from->compute_ns);
        out->split.exchange_s += 1e-9 * (double)atomic_load(&from->exchange_ns);
        out->split.wait_s += 1e-9 * (double)atomic_load(&from->idle_ns);
    }
    out->views = super->hosts.views;
    out->wire_sent = atomic_load(&run->regions->ctl->host.sent);
    out->wire_got = atomic_load(&run->regions->ctl->host.got);
}
