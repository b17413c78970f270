/* hosts_reports.c -- what the carrier reports to the supervisor. */
#include <stdio.h>
#include <sys/socket.h>

#include "train/hosts_int.h"

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
    char names[300] = "", since[sizeof out->saved + 80];
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

void hear_carrier(struct supervisor *super)
{
    struct report what;

    while (super->hosts.socket >= 0 &&
           recv(super->hosts.socket, &what, sizeof what, MSG_DONTWAIT) == (ssize_t)sizeof what)
        hear_report(super, &what);
}
