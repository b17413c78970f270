/* roster_int.h -- the functions that each kind of roster provides. The struct of a kind begins with a
 * co_roster; roster.c passes the calls on. */
#ifndef CO_ROSTER_ROSTER_INT_H
#define CO_ROSTER_ROSTER_INT_H

#include "roster/roster.h"

struct roster_ops {
    co_err (*turn)(co_roster *r, int timeout_ms, co_roster_event *ev);
    int (*fd)(const co_roster *r); /* NULL: none */
    void (*done)(co_roster *r);
    void (*failed)(co_roster *r, const co_failure *f);
    void (*stopped)(co_roster *r);
    void (*leave)(co_roster *r, const co_leave *how);
    void (*close)(co_roster *r);                 /* frees r too */
    int64_t (*clock_offset)(const co_roster *r); /* NULL: 0 */
    /* the rest are NULL for a roster of one host */
    void (*position)(co_roster *r, uint32_t view, const co_position *at, int weight);
    void (*whole)(co_roster *r, uint32_t view);
    void (*cut)(co_roster *r, uint32_t view, int id, const char *why);
    void (*ended)(co_roster *r, uint32_t view);
    void (*unreadable)(co_roster *r, uint32_t view, uint32_t unit);
    void (*weigh)(co_roster *r, uint32_t view, const co_host_speed *speed);
    bool (*log)(co_roster *r, const char *lines, size_t n);
    bool (*keeps)(const co_roster *r);
    long long (*logged)(co_roster *r, co_str *out);
    bool (*settled)(co_roster *r);
    void (*finish)(co_roster *r);
    struct co_tls *(*tls)(const co_roster *r);
};

struct co_roster {
    const struct roster_ops *ops;
};

void leave_text(char *out, size_t size, const co_leave *how); /* how->text, or "SIGTERM on node2" */
/* An OVER event with the fields of `how`. */
co_roster_event leave_event(const co_leave *how);

#endif
