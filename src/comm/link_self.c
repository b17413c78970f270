/* link_self.c -- messages and posted receives in two lists; a message copies its bytes when it is sent.
 * Quadratic and unhurried: for tests. */
#include "comm/link_self.h"

#include <string.h>

#include "base/alloc.h"

struct message {
    int from, to;
    co_tag tag;
    void *bytes; /* a copy, so that a sender that changes them too early is found out by the result */
    size_t len;
};

struct receive {
    int at, from;
    co_tag tag;
    void *to;
    size_t len;
};

struct report {
    bool sent;
    int peer;
    co_tag tag;
};

struct end {
    co_link link;
    co_wire *wire;
    uint32_t view; /* messages of earlier ones are dropped */
    bool open, off;
    struct report *report;
    int n_report, room_report;
};

struct co_wire {
    int hosts;
    struct message *message;
    int n_message, room_message;
    struct receive *receive;
    int n_receive, room_receive;
    struct end end[];
};

/* Room for one more. */
static co_err grow(void *list, int n, int *room, size_t size)
{
    void **at = list;

    if (n < *room)
        return CO_OK;
    int more = *room ? 2 * *room : 64;
    void *p = co_realloc(*at, (size_t)more * size);
    if (!p)
        return CO_ENOMEM;
    *at = p;
    *room = more;
    return CO_OK;
}

static void report(struct end *end, bool sent, int peer, const co_tag *tag)
{
    co_err err = grow(&end->report, end->n_report, &end->room_report, sizeof *end->report);

    CO_ASSERT(err == CO_OK, "memory for a test");
    end->report[end->n_report++] = (struct report){sent, peer, *tag};
}

static struct end *end_of(co_link *link)
{
    return (struct end *)(void *)((char *)link - offsetof(struct end, link));
}

static co_err self_post(co_link *link, int from, const co_tag *tag, void *to, size_t len)
{
    struct end *end = end_of(link);
    co_wire *w = end->wire;

    CO_TRY(grow(&w->receive, w->n_receive, &w->room_receive, sizeof *w->receive));
    w->receive[w->n_receive++] = (struct receive){link->me, from, *tag, to, len};
    return CO_OK;
}

static co_err self_send(co_link *link, int to, const co_tag *tag, const void *bytes, size_t len)
{
    struct end *end = end_of(link);
    co_wire *w = end->wire;

    CO_TRY(grow(&w->message, w->n_message, &w->room_message, sizeof *w->message));
    void *copy = co_zalloc(len + 1);
    if (!copy)
        return CO_ENOMEM;
    memcpy(copy, bytes, len);
    if (w->end[to].view > tag->view) { /* the other side has left that view */
        co_free(copy);
        return CO_OK;
    }
    w->message[w->n_message++] = (struct message){link->me, to, *tag, copy, len};
    return CO_OK;
}

static co_err self_turn(co_link *link, int timeout_ms)
{
    struct end *end = end_of(link);

    (void)timeout_ms;
    for (int i = 0; i < end->n_report; i++) /* more may come while these are reported */
        link->done(link->ctx, end->report[i].sent, end->report[i].peer, &end->report[i].tag);
    end->n_report = 0;
    return CO_OK;
}

static void remove_message(co_wire *w, int i)
{
    co_free(w->message[i].bytes);
    memmove(&w->message[i], &w->message[i + 1], (size_t)(w->n_message - i - 1) * sizeof *w->message);
    w->n_message--;
}

static void self_cut(co_link *link, uint32_t view)
{
    struct end *end = end_of(link);
    co_wire *w = end->wire;
    int left = 0;

    end->view = view;
    end->n_report = 0;
    for (int i = 0; i < w->n_receive; i++)
        if (w->receive[i].at != link->me || w->receive[i].tag.view >= view)
            w->receive[left++] = w->receive[i];
    w->n_receive = left;
    for (int i = w->n_message; i-- > 0;)
        if ((w->message[i].to == link->me || w->message[i].from == link->me) && w->message[i].tag.view < view)
            remove_message(w, i);
}

static const co_link_ops self_ops = {"self", self_post, self_send, self_turn, self_cut};

co_err co_wire_new(co_wire **out, int hosts)
{
    co_wire *w = co_zalloc(sizeof *w + (size_t)hosts * sizeof w->end[0]);

    if (!w)
        return CO_ENOMEM;
    w->hosts = hosts;
    *out = w;
    return CO_OK;
}

void co_wire_free(co_wire *w)
{
    if (!w)
        return;
    while (w->n_message)
        remove_message(w, w->n_message - 1);
    for (int h = 0; h < w->hosts; h++)
        co_free(w->end[h].report);
    co_free(w->message);
    co_free(w->receive);
    co_free(w);
}

co_err co_wire_end(co_wire *w, int me, co_link **out)
{
    struct end *end = &w->end[me];

    if (end->open)
        co_wire_drop(w, me);
    end->link = (co_link){.ops = &self_ops, .me = me};
    end->wire = w;
    end->open = true;
    *out = &end->link;
    return CO_OK;
}

/* The receive that a message goes to; -1: none is posted, or it cannot be delivered, or an earlier one
 * waits. */
static int receive_for(const co_wire *w, const struct message *m)
{
    if (w->end[m->from].off || w->end[m->to].off)
        return -1;
    for (const struct message *before = w->message; before < m; before++)
        if (before->from == m->from && before->to == m->to)
            return -1;
    for (int i = 0; i < w->n_receive; i++) {
        const struct receive *r = &w->receive[i];
        if (r->at == m->to && r->from == m->from && co_tag_same(&r->tag, &m->tag))
            return i;
    }
    return -1;
}

int co_wire_ready(const co_wire *w)
{
    int n = 0;

    for (int i = 0; i < w->n_message; i++)
        n += receive_for(w, &w->message[i]) >= 0;
    return n;
}

void co_wire_deliver(co_wire *w, int nth)
{
    for (int i = 0; i < w->n_message; i++) {
        const struct message m = w->message[i];
        int r = receive_for(w, &w->message[i]);
        if (r < 0 || nth-- > 0)
            continue;
        CO_ASSERT(w->receive[r].len == m.len, "both ends agree about a message's length");
        memcpy(w->receive[r].to, m.bytes, m.len);
        w->receive[r] = w->receive[--w->n_receive];
        report(&w->end[m.to], false, m.from, &m.tag);
        report(&w->end[m.from], true, m.to, &m.tag);
        remove_message(w, i);
        return;
    }
}

void co_wire_drop(co_wire *w, int host)
{
    int left = 0;

    w->end[host].n_report = 0;
    w->end[host].open = false;
    w->end[host].off = false;
    for (int i = 0; i < w->n_receive; i++)
        if (w->receive[i].at != host)
            w->receive[left++] = w->receive[i];
    w->n_receive = left;
    for (int i = w->n_message; i-- > 0;)
        if (w->message[i].from == host || w->message[i].to == host)
            remove_message(w, i);
}

void co_wire_cut_off(co_wire *w, int host, bool off)
{
    w->end[host].off = off;
}
