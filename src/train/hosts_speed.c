/* hosts_speed.c -- how fast this host is: slices are dealt by it. */
#include "base/clock.h"
#include "train/hosts_int.h"
#include "train/timeouts_int.h"

/* Slices in 1000 s of all ranks together, while they compute. */
static int speed_since(const struct hosts *hosts, uint64_t leaves, uint64_t compute_ns, int ranks)
{
    double seconds = (double)(compute_ns - hosts->compute_ns) * 1e-9;

    return seconds > 0 ? (int)(1000 * (double)(leaves - hosts->leaves) * ranks / seconds) : 0;
}

void weigh(struct supervisor *super)
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
