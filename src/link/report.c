/* report.c -- what is done, collected during a turn and reported at its end.
 *
 * So nothing of the link is half-way through its work when the caller's function runs: it may post, send, cut
 * or meet.
 */
#include "link/tcp_int.h"

#include "base/alloc.h"

void report_add(struct tcp *tcp, bool sent, int peer, const co_tag *tag)
{
    if (tcp->n_report == tcp->room_report) {
        size_t room = tcp->room_report ? 2 * tcp->room_report : 256;
        struct report *more = co_realloc(tcp->report, room * sizeof *more);
        if (!more) {
            tcp->err = CO_ENOMEM;
            return;
        }
        tcp->report = more;
        tcp->room_report = room;
    }
    tcp->report[tcp->n_report++] = (struct report){sent, peer, *tag};
}

/* A report may call cut: then later ones of earlier views are left out. */
void report_all(struct tcp *tcp)
{
    for (size_t i = 0; i < tcp->n_report; i++) {
        struct report report = tcp->report[i];
        if (report.tag.view >= tcp->view && tcp->link.done)
            tcp->link.done(tcp->link.ctx, report.sent, report.peer, &report.tag);
    }
    tcp->n_report = 0;
}
