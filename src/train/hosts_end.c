/* hosts_end.c -- the end of a run of several hosts: all of them end together. */
#include <poll.h>

#include "base/clock.h"
#include "train/hosts_int.h"
#include "train/timeouts_int.h"

bool hosts_were_left(struct supervisor *super)
{
    const co_train_hooks *hooks = super->run.hooks;

    if (!super->run.hosts || !super->hosts.over || super->hosts.ended || super->hosts.status == 0 ||
        super->stop.leaves)
        return false;
    /* A host that was in no view has trained nothing: there is nothing to save. */
    if (super->stop.asked_ns)
        return super->hosts.views > 0;
    return !hooks->comes_back || !hooks->comes_back(hooks->ctx);
}

void hosts_stay(struct supervisor *super, bool saved)
{
    struct hosts *hosts = &super->hosts;

    uint64_t until = hosts->wrong ? co_now_ns() + WRONG_MS * UINT64_C(1000000) : UINT64_MAX;

    if (!super->run.hosts || hosts->over || hosts->broken)
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
        co_err err = hosts_turn(super);
        if (err && err != CO_ESTOP)
            run_notice(&super->run, co_errmsg());
        if (err)
            return;
        if (hosts->writer && !hosts->saved) {
            hosts->saved = true; /* once: a failure is reported by the saver, and is no reason to stay */
            save_last(&super->saver, &super->stop, super->run.out->steps);
        }
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
        out->split.compute_s += 1e-9 * (double)(atomic_load(&from->compute_ns) + atomic_load(&from->update_ns));
        out->split.exchange_s += 1e-9 * (double)atomic_load(&from->exchange_ns);
        out->split.wait_s += 1e-9 * (double)atomic_load(&from->idle_ns);
    }
    out->views = super->hosts.views;
    out->wire_sent = atomic_load(&run->regions->ctl->host.sent);
    out->wire_got = atomic_load(&run->regions->ctl->host.got);
}
