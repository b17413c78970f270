/* layout.c -- computes the numbers of hosts and tasks from a list of every task's host.
 *
 * Under mpirun hosts may have different numbers of tasks, so a host cannot infer them from its own. All
 * launchers compute them from the same list and get the same result.
 *
 * Hosts are numbered in the order of their first tasks, and the tasks of a host in the order of their ranks,
 * as Open MPI and MPICH number them.
 */
#include "place/place_int.h"

void layout_take(co_place *p, const int *host)
{
    p->nodes = p->tasks_most = 0;
    for (int r = 0; r < p->seats; r++) {
        int before = 0, tasks = 0;
        for (int other = 0; other < p->seats; other++)
            if (host[other] == host[r]) {
                before += other < r;
                tasks++;
            }
        if (r == p->seat) {
            p->task = before;
            p->tasks = tasks;
        }
        if (before > 0)
            continue;
        if (host[r] == host[p->seat])
            p->node = p->nodes;
        p->nodes++;
        p->tasks_most = tasks > p->tasks_most ? tasks : p->tasks_most;
    }
}

bool layout_alone(co_place *p)
{
    p->tasks_most = p->tasks;
    if (p->tasks < p->seats)
        return false;
    p->nodes = 1;
    p->node = 0;
    return true;
}
