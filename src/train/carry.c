/* carry.c -- see carry_int.h: the loop of the carrier process. */
#include "train/carry_int.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/maths.h"
#include "train/carrier_int.h"
#include "train/timeouts_int.h"

struct carrying {
    const struct carry *carry;
    struct carrier carrier;
    bool wrong;        /* it was reported that members disagree */
    bool whole;        /* as it was reported, */
    uint32_t whole_in; /* in this view */
};

static control *ctl_of(const struct carrying *now)
{
    return now->carry->run->regions->ctl;
}

static void report(const struct carrying *now, const struct report *what)
{
    ssize_t n;

    do
        n = send(now->carry->socket, what, sizeof *what, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR); /* if the supervisor is gone, this process ends with it */
}

/* --- orders --------------------------------------------------------------------------------------------- */
static void freeze(struct carrying *now, uint32_t number)
{
    struct report answer = {
        .kind = REPORT_POSITION, .number = number, .at = carrier_freeze(&now->carrier, number)};

    report(now, &answer);
}

static co_err begin_view(struct carrying *now, const struct order *order)
{
    CO_TRY(co_link_meet(now->carrier.link, order->peer, order->peers));
    now->whole = !order->view.anew[order->view.deal.me] && order->view.feeder[order->view.deal.me] < 0;
    now->whole_in = order->number;
    return carrier_view(&now->carrier, &order->view, order->view.deal.me);
}

/* False: the supervisor is gone. */
static bool take_orders(struct carrying *now, co_err *err)
{
    static struct order order;

    while (!*err) {
        ssize_t n = recv(now->carry->socket, &order, sizeof order, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (n < 0)
            return true;
        if (order.kind == ORDER_FREEZE)
            freeze(now, order.number);
        else
            *err = begin_view(now, &order);
    }
    return true;
}

/* --- reports -------------------------------------------------------------------------------------------- */
static void report_cuts(struct carrying *now)
{
    struct report cut = {.kind = REPORT_CUT, .number = now->carrier.view.deal.view};

    while (co_link_lost(now->carrier.link, &cut.peer, cut.why, sizeof cut.why))
        report(now, &cut);
}

/* A newcomer holds everything now: the next view gives it leaves. */
static void report_whole(struct carrying *now)
{
    if (now->whole || now->carrier.frozen || !carrier_is_whole(&now->carrier))
        return;
    now->whole = true;
    report(now, &(struct report){.kind = REPORT_WHOLE, .number = now->whole_in});
}

/* Members disagree. No host goes on from here. */
static void report_wrong(struct carrying *now)
{
    if (!now->carrier.wrong || now->wrong)
        return;
    now->wrong = true;
    report(now, &(struct report){.kind = REPORT_WRONG,
                                 .number = now->carrier.view.deal.view,
                                 .bits = now->carrier.wrong,
                                 .leaf = now->carrier.wrong_leaf});
}

/* What a successor must know. */
static void remember(struct carrying *now)
{
    control *ctl = ctl_of(now);
    const co_link_counts count = co_link_count(now->carrier.link);

    atomic_store_explicit(&ctl->host.whole, carrier_is_whole(&now->carrier), memory_order_relaxed);
    atomic_store_explicit(&ctl->host.since, now->carrier.since, memory_order_relaxed);
    atomic_store_explicit(&ctl->host.begun, now->carrier.begun, memory_order_relaxed);
    atomic_store_explicit(&ctl->host.sent, count.payload_sent, memory_order_relaxed);
    atomic_store_explicit(&ctl->host.got, count.payload_got, memory_order_relaxed);
    atomic_fetch_add_explicit(&ctl->host.beat, 1, memory_order_relaxed);
}

static void recall(struct carrying *now)
{
    const control *ctl = ctl_of(now);

    now->carrier.begun = atomic_load(&ctl->host.begun);
    now->carrier.since = atomic_load(&ctl->host.since);
    /* what it had is not counted */
    now->carrier.fresh = now->carrier.begun && !atomic_load(&ctl->host.whole);
    if (atomic_load(&ctl->host.whole))
        now->carrier.fed = feed_parts(now->carrier.plan); /* a newcomer that was fed is not fed again */
    now->carrier.frozen = true;                           /* until the next view */
    now->whole = true;
    atomic_fetch_or(&ctl_of(now)->pc, PC_FROZEN);
}

/* --- the loop ------------------------------------------------------------------------------------------- */
static co_err loop(struct carrying *now)
{
    co_event *event = &ctl_of(now)->event;
    co_err err = CO_OK;

    for (;;) {
        struct pollfd fds[3] = {{.fd = now->carry->socket, .events = POLLIN},
                                {.fd = co_link_fd(now->carrier.link), .events = POLLIN},
                                {.fd = event->fd, .events = POLLIN}};
        co_event_poll(event, true);
        if (!take_orders(now, &err))
            return CO_OK;
        if (!err)
            err = carrier_turn(&now->carrier);
        if (err)
            return err;
        report_cuts(now);
        report_whole(now);
        report_wrong(now);
        remember(now);
        poll(fds, 3, CARRIER_NAP_MS);
        co_event_poll(event, false);
    }
}

static co_err open_link(const struct carry *carry, co_link **link)
{
    const co_train_hosts *hosts = carry->run->hosts;

    return co_link_open(link, (co_link_kind)hosts->link,
                        &(co_link_spec){.me = carry->id,
                                        .birth = hosts->birth,
                                        .run = hosts->run,
                                        .listener = hosts->listener,
                                        .tls = hosts->tls});
}

int carry_main(void *ctx)
{
    struct carrying now = {.carry = ctx};
    const struct run *run = now.carry->run;
    co_link *link;

    co_fpu_init();
    co_err err = open_link(now.carry, &link);
    if (!err)
        err = carrier_open(&now.carrier, run->plan, run->regions, link);
    if (!err) {
        now.carrier.flip_at = run->hosts->flip_at;
        recall(&now);
        err = loop(&now);
    }
    if (!err) {
        co_link_close(link); /* MPI ends with all of its processes */
        return 0;
    }
    struct report failed = {.kind = REPORT_FAILED};
    snprintf(failed.why, sizeof failed.why, "%s", co_errmsg());
    report(&now, &failed);
    return 1;
}
