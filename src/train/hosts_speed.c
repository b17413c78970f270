/* hosts_speed.c -- how fast this host is: slices are dealt by it, and a host that stays slow is named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proc/look.h"
#include "train/hosts_int.h"
#include "train/timeouts_int.h"

/* --- what the machine says ------------------------------------------------------------------------------ */
/* How long the ranks' main threads ran, and how long they could have run while others had the CPU. */
static void read_queue(const struct supervisor *super, struct speed_marks *now)
{
    unsigned long long ran, queued;
    char text[128];

    for (int slot = 0; slot < super->run.plan->ranks; slot++) {
        pid_t pid = co_crew_pid(super->crew, slot);
        if (!pid || !co_proc_text(text, sizeof text, pid, "schedstat") ||
            sscanf(text, "%llu %llu", &ran, &queued) != 2)
            continue;
        now->ran_ns += ran;
        now->queued_ns += queued;
    }
}

/* Of all CPUs: ticks in all, and those that the hypervisor gave to others. */
static void read_stolen(struct speed_marks *now)
{
    enum { STEAL = 7, FIELDS = 8 }; /* user nice system idle iowait irq softirq steal */
    char text[512], *at = text + 3;

    if (!co_proc_text(text, sizeof text, 0, "stat") || strncmp(text, "cpu", 3) != 0)
        return;
    for (int i = 0; i < FIELDS; i++) {
        uint64_t ticks = strtoull(at, &at, 10);
        now->ticks += ticks;
        now->stolen += i == STEAL ? ticks : 0;
    }
}

static int clock_mhz(void)
{
    char text[2048];

    co_proc_text(text, sizeof text, 0, "cpuinfo");
    const char *at = strstr(text, "cpu MHz");
    at = at ? strchr(at, ':') : NULL;
    return at ? (int)strtod(at + 1, NULL) : 0;
}

/* --- what the ranks say --------------------------------------------------------------------------------- */
static struct speed_marks read_marks(const struct supervisor *super)
{
    struct speed_marks now = {.t_ns = co_now_ns()};

    for (int slot = 0; slot < super->run.plan->ranks; slot++) {
        const rank_slot *from = &super->run.regions->slots[slot];
        now.leaves += atomic_load_explicit(&from->leaves, memory_order_relaxed);
        now.compute_ns += atomic_load_explicit(&from->compute_ns, memory_order_relaxed);
        now.input_ns += atomic_load_explicit(&from->wait_ns, memory_order_relaxed);
    }
    read_queue(super, &now);
    read_stolen(&now);
    return now;
}

static double since(uint64_t now, uint64_t then)
{
    return now > then ? (double)(now - then) : 0; /* a rank that was replaced counts from 0 */
}

static int percent(double part, double of)
{
    return of > 0 ? (int)(100 * part / of) : 0;
}

static int whole(double x)
{
    return x < 2e9 ? (int)x : 2000000000;
}

/* weight 0: nothing was computed. */
static co_host_speed speed_since(const struct supervisor *super, const struct speed_marks *then,
                                 const struct speed_marks *now)
{
    const co_plan *plan = super->run.plan;
    double leaves = since(now->leaves, then->leaves), compute_ns = since(now->compute_ns, then->compute_ns);
    double queued = since(now->queued_ns, then->queued_ns), ran = since(now->ran_ns, then->ran_ns);

    if (leaves <= 0 || compute_ns <= 0)
        return (co_host_speed){0};
    return (co_host_speed){
        /* slices in 1000 s of all ranks together */
        .weight = whole(1e12 * leaves * plan->ranks / compute_ns),
        .compute_us = whole(1e-3 * compute_ns * plan->threads / leaves),
        .input_us = whole(1e-3 * since(now->input_ns, then->input_ns) * plan->threads / leaves),
        .cpus = co_cpus_usable(),
        .threads = plan->ranks * plan->threads,
        .queued = percent(queued, queued + ran),
        .stolen = percent(since(now->stolen, then->stolen), since(now->ticks, then->ticks)),
        .mhz = clock_mhz(),
        .rehearsed = plan->cfg.fault_host_slow > 1};
}

void weigh(struct supervisor *super)
{
    struct hosts *hosts = &super->hosts;
    const co_train_hosts *given = super->run.hosts;
    uint64_t every_ns = (given->weigh_ms ? (uint64_t)given->weigh_ms : WEIGH_MS) * 1000000;
    bool first = hosts->weighed.t_ns == 0;

    if (!super->crew) /* the ranks have ended; this host only stays for the others */
        return;
    if (!first && co_now_ns() - hosts->weighed.t_ns < every_ns)
        return;
    struct speed_marks now = read_marks(super);
    co_host_speed speed = speed_since(super, &hosts->weighed, &now);
    hosts->weighed = now;
    if (first || speed.weight <= 0)
        return;
    hosts->weight = hosts->weight ? (3 * hosts->weight + speed.weight) / 4 : speed.weight;
    speed.weight = hosts->weight;
    if (!hosts->frozen && hosts->members > 1)
        co_roster_weigh(given->roster, hosts->number, &speed);
}
