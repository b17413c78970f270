/* cpus.c -- divides the CPUs of this machine among the tasks of mpirun or srun that train on it as hosts
 * of their own.
 *
 * Each of them would take all CPUs, and they would slow each other down. So each keeps a part of its own:
 * task 1 of 2 on CPUs 0 to 7 keeps 4 to 7. If the starter has bound its tasks already, or there are fewer
 * CPUs than tasks, nothing changes.
 */
#include "job/launch/launch_int.h"

#include <sched.h>
#include <unistd.h>

#include "proc/crew.h"

void cpus_share(const co_place *place)
{
    cpu_set_t all, mine;
    int have = sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 0, at = 0;
    int tasks = place->tasks, first = have * place->task / tasks, end = have * (place->task + 1) / tasks;

    if (tasks < 2 || have < tasks || have < sysconf(_SC_NPROCESSORS_ONLN))
        return;
    CPU_ZERO(&mine);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            if (at >= first && at < end)
                CPU_SET(cpu, &mine);
            at++;
        }
    if (sched_setaffinity(0, sizeof mine, &mine) == 0 && !place->quiet)
        co_notice("%d tasks train on this machine: each takes %d of its %d CPUs", tasks, end - first, have);
}
