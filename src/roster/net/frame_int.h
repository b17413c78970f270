/* frame_int.h -- the frames that the hosts of a job exchange, and the checked fields of their bodies.
 *
 * docs/formats/wire.md describes every frame. Whatever comes in passes through this header's functions:
 * text is cut to its field, a number outside its range becomes the default.
 */
#ifndef CO_ROSTER_NET_FRAME_INT_H
#define CO_ROSTER_NET_FRAME_INT_H

#include "base/json.h"
#include "net/net.h"
#include "roster/roster_int.h"

/* S: from the server, C: from a client. */
typedef enum {
    FRAME_HELLO = 1, /* C: terms, host, via, advertise, grace; a host that comes back: round, used, done */
    FRAME_WELCOME,   /* S: host, logs, place */
    FRAME_REFUSED,   /* S: text, over */
    FRAME_PING,      /* S: t, offset, done */
    FRAME_PONG,      /* C: t as sent, mine */
    FRAME_TALK,      /* S: text */
    FRAME_PICK,      /* S: choose a port for MASTER_PORT */
    FRAME_PORT,      /* C: port */
    FRAME_BEGIN,     /* S: round */
    FRAME_STOP,      /* S: text, cause */
    FRAME_STOPPED,   /* C */
    FRAME_DONE,      /* C */
    FRAME_FAILED,    /* C: failure */
    FRAME_LEAVE,     /* C: leave */
    FRAME_OVER,      /* S: leave, cause */
    FRAME_LOG,       /* C: log lines as they are, no JSON */
    FRAME_LOGGED,    /* C: no more log lines; it closes */
    /* From here on: a job of views. The head of a server's frame has the view's number. In a client's frame
     * `number` is the view that it speaks of. */
    FRAME_FREEZE,     /* S: place, text */
    FRAME_POSITION,   /* C: position */
    FRAME_VIEW,       /* S: view */
    FRAME_WAIT,       /* S: text */
    FRAME_WHOLE,      /* C: number */
    FRAME_CUT,        /* C: number, place, text */
    FRAME_ENDED,      /* C: number */
    FRAME_WEIGH,      /* C: number, speed */
    FRAME_UNREADABLE, /* C: number, unit */
    FRAME_ASK = 32,   /* C, instead of HELLO: host */
    FRAME_PLAN        /* S: answers ASK with what runs: host, version, cwd, words */
} frame_type;

enum {
    FACTS_MOST = 512 << 10, /* bytes of co_terms.facts */
    WEIGHT_MOST = 1 << 24   /* of a host; the sum of 64 fits an int */
};

/* No host's clock is past this, ns (in 2096). The difference of two times below it fits 64 bits with room
 * to spare. */
#define WALL_MOST_NS INT64_C(4000000000000000000)

uint64_t run_number(const char *run_id); /* stands for the run id in a frame's head */

co_err frame_send(co_conn *conn, frame_type type, uint64_t run, int64_t view,
                  json_t *body);                        /* takes body; NULL: none */
co_err frame_read(json_t **out, const co_frame *frame); /* *out: an object that the caller owns */
void field_text(char *out, size_t size, const json_t *body, const char *key);
int64_t field_int(const json_t *body, const char *key, int64_t least, int64_t most, int64_t otherwise);

json_t *terms_pack(const co_terms *terms);
void terms_unpack(co_terms *terms, const json_t *body);
json_t *round_pack(const co_round *round);
co_err round_unpack(co_round *round, const json_t *body); /* CO_EFORMAT: the numbers contradict each other */
json_t *failure_pack(const co_failure *failure);
void failure_unpack(co_failure *failure, const json_t *body);
json_t *leave_pack(const co_leave *how);
void leave_unpack(co_leave *how, const json_t *body);

/* ---- view_frame.c ---- */
json_t *position_pack(uint32_t number, const co_position *at, int weight);
/* CO_EFORMAT: no host stands there. */
co_err position_unpack(co_position *at, int *weight, const json_t *body);
json_t *speed_pack(uint32_t number, const co_host_speed *speed);
void speed_unpack(co_host_speed *speed, const json_t *body); /* a field that is missing or out of range: 0 */
json_t *view_pack(const co_roster_view *view);
/* CO_EFORMAT: the numbers contradict each other. What passes can be used as it is. */
co_err view_unpack(co_roster_view *view, const json_t *body, uint32_t number);
void long_text(char out[20], uint64_t birth);
uint64_t long_parse(const json_t *body, const char *key); /* 0: none */

/* ---- facts.c ---- */
/* *out is the caller's; NULL if text is. CO_EINPUT: not an object of texts, or too long. */
co_err facts_parse(json_t **out, const char *text);
co_err facts_check(const json_t *facts);

/* ---- terms.c ---- */
typedef struct host_name {
    char name[CO_HOST_NAME], addr[CO_HOST_NAME];
} host_name;
/* Whether a host with terms `b` may join a job with terms `a`. If not: what to say to each side. */
bool terms_agree(char *to_b, char *to_a, size_t size, const co_terms *a, const co_terms *b,
                 const host_name *at_a, const host_name *at_b);

#endif
