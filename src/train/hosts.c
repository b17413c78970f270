/* hosts.c -- see hosts_int.h. */
#include "train/hosts_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "train/agree_int.h"
#include "train/timeouts_int.h"

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
        co_err err = co_roster_turn(super->run.hosts->roster, 0, &event);
        if (err) {
            super->hosts.broken = true;
            return err;
        }
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

/* The step that was READY is finished, and no rank writes what hosts share: the state is whole, or this host
 * never had one. */
static bool is_settled(const struct supervisor *super)
{
    const struct regions *regions = super->run.regions;
    uint64_t pc = atomic_load(&regions->ctl->pc);

    if (pc & (PC_STOP | PC_END | PC_FAIL) || !super->hosts.child.pid)
        return true;
    return pc_is_frozen(pc) || co_now_ns() - super->hosts.over_ns > SETTLE_MS * UINT64_C(1000000);
}

/* A request to stop travels with a step. If no step is under way, because hosts are missing, this host
 * leaves. */
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
    offer_unreadable(super);
    return super->hosts.over && is_settled(super) ? CO_ESTOP : CO_OK;
}

/* --- opening and closing -------------------------------------------------------------------------------- */
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
    atomic_store(&ctl->host.start, hash_of_state(super->run.plan, super->run.regions));
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
    drop_carrier(hosts);
    while (hosts->child.pid && child_turn(&hosts->child, 0, 1, 1e-3 * CARRIER_ENDS_MS, &status) == CHILD_RUNS)
        poll(&(struct pollfd){.fd = hosts->child.pidfd, .events = POLLIN}, 1, CO_TURN_MS);
    if (super->run.regions && super->run.regions->ctl->event.fd > 0)
        close(super->run.regions->ctl->event.fd);
}
