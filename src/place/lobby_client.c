/* lobby_client.c -- fetches the card from the first launcher of a Slurm step (lobby.c has the protocol).
 *
 * The first launcher may not listen yet, it may use any of the ports, and other programs may use the rest.
 * So we try every address and port, again and again, until an answer comes that munge attributes to this
 * user.
 */
#include "place/place_int.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "place/times_int.h"

enum { ADDRESSES = 8 };

static co_patience soon(const co_patience *p)
{
    uint64_t until = co_now_ns() + TRY_MS * UINT64_C(1000000);

    return (co_patience){.until_ns = until < p->until_ns ? until : p->until_ns, .give_up = p->give_up};
}

static co_err send_line(int fd, const char *line)
{
    char text[LOBBY_LINE + 2];
    int n = snprintf(text, sizeof text, "%s\n", line);

    return send(fd, text, (size_t)n, MSG_NOSIGNAL) == n ? CO_OK : co_fail(CO_EPEER, "it closed the connection");
}

static co_err read_line(char *out, size_t size, int fd, const co_patience *p)
{
    size_t have = 0;

    while (have + 1 < size) {
        uint64_t now = co_now_ns();
        struct pollfd f = {.fd = fd, .events = POLLIN};
        if (now >= p->until_ns || poll(&f, 1, (int)((p->until_ns - now) / 1000000) + 1) == 0)
            return co_fail(CO_ETIMEOUT, "it does not answer");
        ssize_t n = recv(fd, out + have, size - 1 - have, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            return co_fail(CO_EPEER, "it closed the connection without an answer (is it another job's?)");
        have += (size_t)n;
        out[have] = '\0';
        char *end = memchr(out, '\n', have);
        if (end) {
            *end = '\0';
            return CO_OK;
        }
    }
    return co_fail(CO_EFORMAT, "its answer has no end");
}

/* Tries one address and port. */
static co_err ask_one(card *out, munge *m, const char *greeting, const co_addr *to, const co_patience *p)
{
    char line[LOBBY_ANSWER], text[CARD_TEXT];
    co_patience now = soon(p);
    int fd;

    CO_TRY(co_net_connect(&fd, to, &now));
    co_err err = munge_wrap(m, line, LOBBY_LINE, greeting); /* a new one each time: a credential works once */
    if (!err)
        err = send_line(fd, line);
    if (!err)
        err = read_line(line, sizeof line, fd, &now);
    if (!err)
        err = munge_unwrap(m, text, sizeof text, line);
    if (!err)
        err = card_parse(out, text);
    if (!err)
        send_line(fd, "ok");
    close(fd);
    explicit_bzero(text, sizeof text);
    return err;
}

static co_err ask_all(card *out, munge *m, const char *host, const char *run_id, const char *greeting,
                      const co_patience *p)
{
    co_addr to[ADDRESSES];
    char via[CO_NAME_MOST], why[500] = "";
    co_endpoint at;
    int n = 0;

    CO_TRY(co_net_resolve(to, ADDRESSES, &n, host, 0, p));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < LOBBY_PORTS; k++) {
            co_addr_set_port(&to[i], lobby_port(run_id, k));
            co_err err = ask_one(out, m, greeting, &to[i], p);
            co_addr_text(via, sizeof via, &to[i]);
            if (!err) { /* this address works: use it for the roster as well */
                co_endpoint_parse(&at, out->endpoint);
                co_endpoint_text(out->endpoint, sizeof out->endpoint, via, at.port);
                return CO_OK;
            }
            if (err != CO_EPEER || !*why)
                snprintf(why, sizeof why, "%s: %.200s", via, co_errmsg());
        }
    return co_fail(CO_EPEER, "%s", why);
}

co_err lobby_ask(card *out, const char *host, const char *run_id, int seat, const co_patience *p,
                 void (*talk)(const char *))
{
    char greeting[200], line[800];
    uint64_t began = co_now_ns(), say_at = began + SAY_MS * UINT64_C(1000000);
    munge *m;

    CO_TRY(munge_open(&m));
    lobby_greeting(greeting, sizeof greeting, run_id, seat);
    co_err err;
    while ((err = ask_all(out, m, host, run_id, greeting, p))) {
        uint64_t now = co_now_ns();
        snprintf(line, sizeof line, "the first launcher, on %s, does not answer: %.400s", host, co_errmsg());
        if (now >= p->until_ns) {
            err = co_fail(CO_EFAIL, "%s. Did it end? Its own lines say more", line);
            break;
        }
        if (now >= say_at) {
            talk(line);
            say_at = now + SAY_AGAIN_MS * UINT64_C(1000000);
        }
        poll(NULL, 0, now - began < UINT64_C(1000000000) ? RETRY_MS : RETRY_LATE_MS);
    }
    munge_close(m);
    return err;
}
