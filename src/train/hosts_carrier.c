/* hosts_carrier.c -- the carrier process of this host: started, given orders, watched, replaced. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signal.h"
#include "train/hosts_int.h"
#include "train/timeouts_int.h"

void drop_carrier(struct hosts *hosts)
{
    if (hosts->socket >= 0)
        close(hosts->socket);
    hosts->socket = -1;
}

co_err start_carrier(struct supervisor *super)
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

void order(struct hosts *hosts, const struct order *what)
{
    if (hosts->socket < 0)
        return;
    ssize_t n = send(hosts->socket, what, sizeof *what, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
        child_kill(&hosts->child); /* it is stopped, and would miss this order */
    /* a carrier that is gone is replaced, and the members change their view again */
}

void order_freeze(struct hosts *hosts, uint32_t number)
{
    order(hosts, &(struct order){.kind = ORDER_FREEZE, .number = number});
}

void end_mpi(struct supervisor *super, const char *why)
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

co_err attend_carrier(struct supervisor *super)
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
