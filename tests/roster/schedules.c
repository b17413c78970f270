/* schedules.c -- see schedules.h. */
#include "roster/schedules.h"

#include <stdio.h>
#include <string.h>

#include "harness.h"

#define EVENT_WORDS(name, words) words,
static const char *const words[] = {EVENT_KINDS(EVENT_WORDS)};

int outlook_hosts(const outlook *o)
{
    int n = 0;

    for (int i = 0; i < HOSTS; i++)
        n += o->in[i];
    return n;
}

outlook outlook_start(const schedule *s)
{
    outlook o = {.restarts = 0};

    for (int i = 0; i < HOSTS; i++) {
        o.in[i] = i < s->hosts;
        o.status[i] = -1;
    }
    return o;
}

/* ---- the model ---- */
static void leaves(outlook *o, int host, int status)
{
    o->in[host] = false;
    o->status[host] = status;
}

static void ends(outlook *o, int status)
{
    for (int i = 0; i < HOSTS; i++)
        if (o->in[i])
            leaves(o, i, status);
    o->over = true;
}

static void fails(const schedule *s, outlook *o, int status)
{
    if (o->restarts < s->restarts && outlook_hosts(o) >= s->min)
        o->restarts++;
    else
        ends(o, status);
}

/* The other hosts lose `host`. Its launcher ends with `status`, if it ends. */
static void is_lost(const schedule *s, outlook *o, int host, int status)
{
    int left = outlook_hosts(o) - 1;

    if (host != 0) {
        leaves(o, host, status);
        fails(s, o, 1);
        return;
    }
    for (int i = 1; i < HOSTS; i++)
        if (o->in[i])
            leaves(o, i, 75);
    if (status == 137) { /* it was killed */
        leaves(o, 0, 137);
        o->over = true;
    } else if (left > 0) { /* the keeper loses all the others at once */
        fails(s, o, 1);
    }
}

outlook outlook_after(const schedule *s, outlook o, const event *e)
{
    for (int i = 0; i < HOSTS; i++)
        o.status[i] = -1;
    switch (e->kind) {
    case EV_KILL_WORKER:
    case EV_KILL_ALL:
    case EV_KILL_BESIDE_STOPPED:
        fails(s, &o, 137);
        break;
    case EV_EXIT_WORKER:
        fails(s, &o, e->status);
        break;
    case EV_KILL_AGENT:
        is_lost(s, &o, e->host, 137);
        break;
    case EV_TERM_AGENT:
        ends(&o, 75);
        break;
    case EV_TERM_STUCK: /* its worker has to be killed after the grace period */
        ends(&o, 75);
        o.status[e->host] = 143;
        break;
    case EV_FREEZE_LONG:
    case EV_CUT_LONG:
        is_lost(s, &o, e->host, 75);
        break;
    case EV_JOIN:
        if (outlook_hosts(&o) < s->max)
            o.in[e->host] = true;
        else
            o.status[e->host] = 2; /* refused */
        break;
    case EV_STOP_WORKER:
    case EV_FREEZE_SHORT:
    case EV_CUT_SHORT:
    case EVENT_COUNT:
        break;
    }
    return o;
}

bool schedule_spares(const schedule *s, int host)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].host == host && s->at[i].kind >= EV_KILL_AGENT)
            return false;
    return true;
}

bool schedule_allows(const schedule *s, int host, int status)
{
    bool may = status == 0;

    for (int i = 0; i < s->n; i++) {
        const event *e = &s->at[i];
        bool mine = e->host == host;
        switch (e->kind) {
        case EV_KILL_WORKER:
        case EV_KILL_ALL:
        case EV_KILL_BESIDE_STOPPED:
            may |= status == 137;
            break;
        case EV_EXIT_WORKER:
            may |= status == e->status;
            break;
        case EV_KILL_AGENT:
            may |= mine ? status == 137 : status == 1 || status == 75;
            break;
        case EV_TERM_AGENT:
        case EV_TERM_STUCK:
            may |= status == 75 || (mine && status == 143);
            break;
        case EV_FREEZE_LONG:
        case EV_FREEZE_SHORT:
        case EV_CUT_LONG:
        case EV_CUT_SHORT:
            may |= status == 75 || status == 1;
            break;
        case EV_JOIN: /* the job is full, or over */
            may |= mine && (status == 2 || status == 1 || status == 75);
            break;
        case EV_STOP_WORKER:
        case EVENT_COUNT:
            break;
        }
    }
    return may;
}

/* ---- drawing ---- */
static int draw(uint64_t *rng, int least, int most)
{
    return least + (int)(test_u32(rng) % (uint32_t)(most - least + 1));
}

/* A host that is in the job, or (JOIN) one that is not; -1: there is none. */
static int draw_host(uint64_t *rng, const outlook *o, bool in)
{
    int first = draw(rng, 0, HOSTS - 1);

    for (int i = 0; i < HOSTS; i++)
        if (o->in[(first + i) % HOSTS] == in)
            return (first + i) % HOSTS;
    return -1;
}

schedule schedule_draw(uint64_t seed)
{
    uint64_t rng = seed * 0x9E3779B97F4A7C15u + 6;
    schedule s = {.seed = seed, .hosts = draw(&rng, 2, HOSTS), .nproc = draw(&rng, 1, 2)};
    bool elastic = draw(&rng, 0, 2) > 0;

    s.min = elastic ? draw(&rng, 1, 2) : s.hosts;
    s.max = elastic ? HOSTS : s.hosts;
    s.restarts = draw(&rng, 0, 2);
    s.hasty = draw(&rng, 0, 2) == 0;
    int wanted = draw(&rng, 1, EVENTS);
    outlook o = outlook_start(&s);
    while (s.n < (s.hasty ? EVENTS : wanted) && !o.over) {
        event e = {.kind = (event_kind)draw(&rng, 0, EVENT_COUNT - 1), .status = draw(&rng, 1, 120)};
        e.host = draw_host(&rng, &o, e.kind != EV_JOIN);
        e.local = draw(&rng, 0, s.nproc - 1);
        if (e.host < 0 || (e.kind == EV_KILL_BESIDE_STOPPED && outlook_hosts(&o) < 2))
            continue;
        s.at[s.n++] = e;
        o = outlook_after(&s, o, &e);
    }
    return s;
}

void schedule_text(char *out, size_t size, const schedule *s)
{
    int n = snprintf(out, size, "seed %llu: %s%d hosts of %d:%d, %d workers each, %d restarts",
                     (unsigned long long)s->seed, s->hasty ? "hasty, " : "", s->hosts, s->min, s->max,
                     s->nproc, s->restarts);

    for (int i = 0; i < s->n && (size_t)n < size; i++)
        n += snprintf(out + n, size - (size_t)n, "; %s %d.%d", words[s->at[i].kind], s->at[i].host,
                      s->at[i].local);
}
