/* roster.c -- the calls of roster.h, passed on to whichever kind of roster it is. */
#include "roster/roster_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/signal.h"

co_err co_roster_turn(co_roster *r, int timeout_ms, co_roster_event *ev)
{
    return r->ops->turn(r, timeout_ms, ev);
}

int co_roster_fd(const co_roster *r)
{
    return r->ops->fd ? r->ops->fd(r) : -1;
}

int64_t co_roster_clock_offset(const co_roster *r)
{
    return r->ops->clock_offset ? r->ops->clock_offset(r) : 0;
}

void co_roster_done(co_roster *r)
{
    r->ops->done(r);
}

void co_roster_failed(co_roster *r, const co_failure *f)
{
    r->ops->failed(r, f);
}

void co_roster_stopped(co_roster *r)
{
    r->ops->stopped(r);
}

void co_roster_position(co_roster *r, uint32_t view, const co_position *at, int weight)
{
    if (r->ops->position)
        r->ops->position(r, view, at, weight);
}

void co_roster_whole(co_roster *r, uint32_t view)
{
    if (r->ops->whole)
        r->ops->whole(r, view);
}

void co_roster_cut(co_roster *r, uint32_t view, int id, const char *why)
{
    if (r->ops->cut)
        r->ops->cut(r, view, id, why);
}

void co_roster_ended(co_roster *r, uint32_t view)
{
    if (r->ops->ended)
        r->ops->ended(r, view);
}

void co_roster_unreadable(co_roster *r, uint32_t view, uint32_t unit)
{
    if (r->ops->unreadable)
        r->ops->unreadable(r, view, unit);
}

void co_roster_weigh(co_roster *r, uint32_t view, const co_host_speed *speed)
{
    if (r->ops->weigh)
        r->ops->weigh(r, view, speed);
}

void co_roster_leave(co_roster *r, const co_leave *how)
{
    r->ops->leave(r, how);
}

bool co_roster_log(co_roster *r, const char *lines, size_t n)
{
    return r->ops->log ? r->ops->log(r, lines, n) : true;
}

bool co_roster_keeps(const co_roster *r)
{
    return r->ops->keeps && r->ops->keeps(r);
}

long long co_roster_logged(co_roster *r, co_str *out)
{
    return r->ops->logged ? r->ops->logged(r, out) : 0;
}

bool co_roster_settled(co_roster *r)
{
    return r->ops->settled ? r->ops->settled(r) : true;
}

struct co_tls *co_roster_tls(const co_roster *r)
{
    return r->ops->tls ? r->ops->tls(r) : NULL;
}

void co_roster_finish(co_roster *r)
{
    if (r->ops->finish)
        r->ops->finish(r);
}

void leave_text(char *out, size_t size, const co_leave *how)
{
    const char *name = co_signal_name(how->sig);

    if (*how->text || !how->sig)
        snprintf(out, size, "%s", how->text);
    else if (how->origin == CO_ORIGIN_CONDUCTOR)
        snprintf(out, size, "%s from the command that started the job", name);
    else
        snprintf(out, size, "%s on %.40s", name, how->host);
}

co_roster_event leave_event(const co_leave *how)
{
    co_roster_event ev = {.kind = CO_ROSTER_OVER, .status = how->status, .sig = how->sig, .origin = how->origin};

    memcpy(ev.host, how->host, sizeof ev.host);
    leave_text(ev.text, sizeof ev.text, how);
    return ev;
}

int co_failure_status(const co_failure *f)
{
    return WIFSIGNALED(f->status) ? 128 + WTERMSIG(f->status) : WEXITSTATUS(f->status);
}

void co_roster_close(co_roster *r)
{
    if (r)
        r->ops->close(r);
}
