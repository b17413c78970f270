/* layout.c -- from the host of every task to what a place says of hosts. Under mpirun a host may have more
 * tasks than another: what one host knows of itself says nothing about the others. Everybody computes this
 * from the same list, so all come to the same.
 *
 * Hosts are numbered in the order of their first tasks, tasks of a host in the order of their ranks, as
 * both mpiruns do it.
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
