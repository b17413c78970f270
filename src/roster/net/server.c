/* roster_net_server.c -- the seats: who is connected, who may stay, who is silent, whose clock is where.
 *
 * One thread, nothing blocks. A seat is dropped at one place only (sweep), at the end of a turn, so that no other loop over the
 * seats sees one vanish. Silence is counted in turns of at most LATE_TURN_MS: when this process itself was stopped or
 * starved, nobody is silent because of it.
 */
#include "roster/net/server_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

static seat *seat_new(server *s, co_conn *conn)
{
    if (s->n == s->room) {
        int room = s->room ? 2 * s->room : 8;
        seat **seats = co_realloc(s->seats, (size_t)room * sizeof *seats);
        if (!seats)
            return NULL;
        s->seats = seats;
        s->room = room;
    }
    seat *h = co_zalloc(sizeof *h);
    if (!h)
        return NULL;
    h->conn = conn;
    h->host = -1;
    h->best_rtt_ns = -1;
    h->heard_ns = meet_clock(&s->where);
    h->from = co_net_peer(co_conn_fd(conn));
    co_addr_text(h->who.addr, sizeof h->who.addr, &h->from);
    s->seats[s->n++] = h;
    return h;
}

static void seat_free(seat *h)
{
    co_conn_free(h->conn);
    co_free(h);
}

co_err server_open(server **out, const co_terms *terms, const co_meet *where, const meeting *m, co_tls *tls,
                   int local_fd)
{
    server *s = co_zalloc(sizeof *s);
    co_conn *mine = NULL;
    co_err err = s ? co_conn_new(&mine, local_fd, NULL, CO_CONN_SERVER) : CO_ENOMEM;

    if (!s)
        close(local_fd);
    if (err)
        close(m->listener);
    else
        err = co_gate_open(&s->gate, m->listener, tls);
    if (err) {
        co_conn_free(mine);
        co_free(s);
        return err;
    }
    s->terms = *terms;
    s->where = *where;
    s->at = m->at;
    s->run = run_number(terms->run_id);
    s->last_call_ms = -1;
    if (*where->host)
        snprintf(s->me, sizeof s->me, "%s", where->host);
    else if (gethostname(s->me, sizeof s->me - 1) != 0)
        snprintf(s->me, sizeof s->me, "host");
    seat *h = seat_new(s, mine);
    if (!h) {
        co_conn_free(mine);
        server_close(s);
        return CO_ENOMEM;
    }
    h->local = true;
    snprintf(h->who.addr, sizeof h->who.addr, "here");
    *out = s;
    return CO_OK;
}

void server_close(server *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        seat_free(s->seats[i]);
    co_free(s->seats);
    co_gate_close(s->gate);
    explicit_bzero(s->where.token, sizeof s->where.token);
    co_free(s);
}

int server_fds(const server *s, struct pollfd *fds, int most)
{
    int n = 0;

    fds[n++] = (struct pollfd){.fd = co_gate_fd(s->gate), .events = POLLIN};
    for (int i = 0; i < s->n && n < most; i++)
        fds[n++] = (struct pollfd){.fd = co_conn_fd(s->seats[i]->conn),
                                   .events = (short)co_conn_events(s->seats[i]->conn)};
    return n;
}

void seat_name(char *out, size_t size, const seat *h)
{
    if (h->local)
        snprintf(out, size, "%.200s", h->who.name);
    else
        snprintf(out, size, "%.200s (%.60s)", h->who.name, h->who.addr);
}

int server_joined(const server *s)
{
    int n = 0;

    for (int i = 0; i < s->n; i++)
        n += s->seats[i]->joined && !*s->seats[i]->gone;
    return n;
}

/* In the job, or it left and its lines are still to come. */
static bool stays(const seat *h)
{
    return h->joined || (h->logs && !h->logged);
}

static void drop(seat *h, const char *why)
{
    if (!*h->gone)
        snprintf(h->gone, sizeof h->gone, "%s", *why ? why : "gone");
}

void seat_say(server *s, seat *h, word type, json_t *body)
{
    /* Nobody who speaks plainly on the local pair is a stranger, but the first frame is still to come. */
    if (!co_conn_known(h->conn) || *h->gone) {
        json_decref(body);
        return;
    }
    if (word_send(h->conn, type, s->run, s->round.number, body))
        drop(h, co_errmsg());
}

void server_talk(server *s, bool to_all, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (int i = 0; i < s->n; i++)
        if (s->seats[i]->joined && (to_all || s->seats[i]->local))
            seat_say(s, s->seats[i], WORD_TALK, json_pack("{so}", "text", co_json_string(text)));
}

/* Frames of an earlier round are read and dropped. */
static bool of_this_round(const server *s, const co_frame *f, const seat *h)
{
    return f->view == (uint32_t)s->round.number && h->host >= 0;
}

static void hear(server *s, seat *h, const co_frame *f)
{
    json_t *body = NULL;
    co_failure failure;
    char why[512];

    if (f->type == WORD_LOG) {
        h->silent_ms = 0;
        h->heard_ns = meet_clock(&s->where);
        if (h->logs)
            s->log(s->log_ctx, f->body, f->len);
        return;
    }
    if (word_read(&body, f)) {
        drop(h, co_errmsg());
        return;
    }
    h->silent_ms = 0;
    h->heard_ns = meet_clock(&s->where);
    h->logged = h->logged || f->type == WORD_LOGGED;
    if (!h->joined) {
        if (f->type == WORD_HELLO && !h->closing)
            seat_hello(s, h, body);
        else if (f->type == WORD_ASK && !h->closing)
            server_asked(s, h, body);
        else if (f->type == WORD_LEAVE && !h->closing)
            server_not_joined(s, h, body);
    } else if (f->type == WORD_PONG) {
        seat_pong(s, h, body);
    } else if (f->type == WORD_PORT && of_this_round(s, f, h)) {
        rounds_port(s, h, (int)word_int(body, "port", 1, 65535, 0));
    } else if (f->type == WORD_DONE && of_this_round(s, f, h)) {
        h->done = s->some_done = true;
        for (int i = 0; i < s->n && h->local; i++)
            if (s->seats[i]->joined)
                seat_ping(s, s->seats[i]); /* what this host would leave undone is nothing, from now on */
    } else if (f->type == WORD_STOPPED && of_this_round(s, f, h)) {
        h->stopped = true;
    } else if (f->type == WORD_FAILED && of_this_round(s, f, h)) {
        failure_unpack(&failure, body);
        rounds_failed(s, h, &failure);
    } else if (f->type == WORD_LEAVE) {
        word_text(why, sizeof why, body, "why");
        rounds_left(s, h, (int)word_int(body, "status", 0, 255, 1), why);
    }
    json_decref(body);
}

static void serve(server *s, seat *h)
{
    co_frame f;
    bool got = true;
    co_err err = *h->gone ? CO_OK : co_conn_work(h->conn);
    char why[300];

    snprintf(why, sizeof why, "%s", err ? co_errmsg() : "");
    if (!stays(h) && !h->local && co_conn_unread(h->conn) > GREETING_MOST)
        drop(h, "too long a greeting");
    while (got && !*h->gone) {
        if (co_conn_next(h->conn, &f, &got))
            drop(h, co_errmsg());
        else if (got)
            hear(s, h, &f);
    }
    if (err) {
        h->heard_ns = meet_clock(&s->where); /* an end that is seen happened now; a silence, when it began */
        drop(h, why);
    }
}

static void watch(server *s, seat *h, double elapsed_ms)
{
    double limit_ms = 1000 * (s->where.lost_after_s > 0 ? s->where.lost_after_s : 3);
    char why[100];

    h->silent_ms += elapsed_ms;
    h->age_ms += elapsed_ms;
    if (stays(h) && !h->local && h->silent_ms > limit_ms) {
        snprintf(why, sizeof why, "no sign of life for %.1f s", h->silent_ms / 1000);
        drop(h, why);
    }
    if (!stays(h) && h->age_ms > (h->closing ? LINGER_MS : HELLO_MS))
        drop(h, "did not say who it is");
    if (stays(h) && (h->since_ping_ms += elapsed_ms) >= (limit_ms < 3 * BEAT_MS ? limit_ms / 3 : BEAT_MS))
        seat_ping(s, h);
}

/* It is not heard any more, and has not said that it logged all. */
static void note_unlogged(server *s, const seat *h)
{
    char stamp[CO_STAMP], line[CO_HOST_NAME + 200];

    if (!h->logs || h->logged)
        return;
    co_stamp(stamp, (double)meet_clock(&s->where) / 1e9);
    int n = snprintf(line, sizeof line,
                     "%s [%s:-] what it logged last may be missing here: it is in merged.log on that host\n",
                     stamp, h->who.name);
    s->log(s->log_ctx, line, (size_t)n);
}

void server_logs_end(server *s)
{
    for (int i = 0; i < s->n; i++)
        note_unlogged(s, s->seats[i]);
}

static void sweep(server *s)
{
    for (int i = 0; i < s->n;) {
        seat *h = s->seats[i];
        if (!*h->gone) {
            i++;
            continue;
        }
        memmove(&s->seats[i], &s->seats[i + 1], (size_t)(--s->n - i) * sizeof *s->seats);
        note_unlogged(s, h);
        if (h->joined) {
            s->losses++;
            rounds_lost(s, h);
        }
        seat_free(h);
        i = 0; /* telling the others may have lost one more */
    }
}

/* Somebody without the token at the door: worth a line now and then, not one each. */
static void tell_wrong_tokens(server *s, double elapsed_ms)
{
    co_gate_counts n = co_gate_count(s->gate);
    char from[CO_NAME_MOST];

    s->wrong_token_ms += elapsed_ms;
    if (n.wrong_token == s->wrong_token_told || (s->wrong_token_told && s->wrong_token_ms < RETALK_MS))
        return;
    co_addr_text(from, sizeof from, &n.wrong_from);
    server_talk(s, false, "step token: %s tried to join with another token and was sent away (%llu so far)",
                from, (unsigned long long)n.wrong_token);
    s->wrong_token_told = n.wrong_token;
    s->wrong_token_ms = 0;
}

/* Without TLS whoever sends a frame's head is let in: of those who do not go on to say who they are, the oldest goes. */
static void make_room(server *s)
{
    seat *oldest = NULL;
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        seat *h = s->seats[i];
        if (stays(h) || h->local || *h->gone)
            continue;
        n++;
        if (!oldest || h->age_ms > oldest->age_ms)
            oldest = h;
    }
    if (n >= CO_STRANGERS)
        drop(oldest, "others came");
}

void server_turn(server *s, double elapsed_ms)
{
    for (co_conn *c; (c = co_gate_turn(s->gate));) {
        make_room(s);
        if (s->n >= CO_MAX_HOSTS + CO_STRANGERS || !seat_new(s, c))
            co_conn_free(c);
    }
    for (int i = 0; i < s->n; i++)
        serve(s, s->seats[i]);
    for (int i = 0; i < s->n; i++)
        watch(s, s->seats[i], elapsed_ms);
    tell_wrong_tokens(s, elapsed_ms);
    sweep(s);
    rounds_turn(s, elapsed_ms);
}

void server_logs_to(server *s, void (*log)(void *ctx, const char *lines, size_t n), void *ctx)
{
    s->log = log;
    s->log_ctx = ctx;
}

void server_resume(server *s, const past *p)
{
    s->past = *p;
    s->least_restarts = p->restarts < s->terms.max_restarts ? p->restarts : s->terms.max_restarts;
    s->has_cause = p->has_cause;
    s->cause = p->cause;
}

int server_losses(const server *s)
{
    return s->losses;
}

bool server_asks(const server *s)
{
    return s->asks;
}

void server_clear(server *s, int losses)
{
    s->cleared = losses;
}

bool server_over(const server *s)
{
    return s->stage == OVER;
}

int server_status(const server *s, char *text, size_t size)
{
    snprintf(text, size, "%s", s->why);
    return s->status;
}

bool server_idle(const server *s)
{
    if (s->stage != OVER)
        return false;
    for (int i = 0; i < s->n; i++)
        if (!s->seats[i]->local && stays(s->seats[i])) /* they close when they have heard it */
            return false;
    return true;
}
