/* lobby.c -- a small server in the first launcher of a Slurm step: it sends the others the roster's port and
 * token. It listens on one of LOBBY_PORTS ports, which all launchers derive from the step.
 *
 *     joiner                                       first launcher
 *       munge("cohort-lobby RUN SEAT") '\n'  -->     decodes it: same user, same run?
 *                                            <--   munge(card) '\n', for this user alone
 *       "ok\n"                               -->     one seat less to wait for
 *
 * A client that sends anything else gets no answer and is closed after LOBBY_LINE bytes or CO_STRANGER_MS.
 * At most CO_STRANGERS clients are connected at once; when one more comes, the oldest is closed. The munge
 * daemon accepts a credential once, so a recorded one is useless, and only this user can decode the answer.
 * The lobby runs in a thread of its own, which ends when every seat has said ok or the lobby is closed.
 */
#include "place/place_int.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "place/times_int.h"

typedef struct guest {
    int fd; /* -1: this slot is free */
    uint64_t until_ns;
    int seat; /* the seat that got its answer; 0: no answer sent yet */
    size_t have;
    char line[LOBBY_LINE + 1];
} guest;

struct lobby {
    int listener, wake[2];
    pthread_t thread;
    munge *munge;
    char run_id[128];
    int seats, left;
    bool *has; /* [seats]: which of them have the card */
    char answer[CARD_TEXT];
    guest guests[CO_STRANGERS];
};

int lobby_port(const char *run_id, int nth)
{
    uint64_t h = co_fnv1a64(run_id, strlen(run_id)); /* any hash will do that both sides use */

    return 10000 + (int)((h + (uint64_t)nth * 2503u) % 20000u);
}

static void dismiss(guest *g)
{
    close(g->fd);
    *g = (guest){.fd = -1};
}

static void admit(lobby *l)
{
    int fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    guest *g = &l->guests[0];

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            poll(NULL, 0, LOBBY_FULL_MS); /* the listener stays readable, so sleep instead of spinning */
        return;
    }
    for (int i = 0; i < CO_STRANGERS && g->fd >= 0; i++)
        if (l->guests[i].fd < 0 || l->guests[i].until_ns < g->until_ns)
            g = &l->guests[i];
    if (g->fd >= 0)
        dismiss(g);
    *g = (guest){.fd = fd, .until_ns = co_now_ns() + CO_STRANGER_MS * UINT64_C(1000000)};
}

/* Acts on a whole line. False: we are done with this client. */
static bool heard(lobby *l, guest *g)
{
    char text[LOBBY_LINE], answer[LOBBY_ANSWER];
    int seat;

    if (g->seat) {
        if (strcmp(g->line, "ok") == 0 && !l->has[g->seat]) {
            l->has[g->seat] = true;
            l->left--;
        }
        return false;
    }
    if (munge_unwrap(l->munge, text, sizeof text, g->line) || !lobby_greeted(&seat, text, l->run_id, l->seats) ||
        munge_wrap(l->munge, answer, sizeof answer - 1, l->answer))
        return false;
    size_t n = strlen(answer);
    answer[n++] = '\n';
    /* the answer is shorter than a socket's buffer, so it is sent whole or not at all */
    if (send(g->fd, answer, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
        return false;
    g->seat = seat;
    g->have = 0;
    return true;
}

static void listen_to(lobby *l, guest *g)
{
    ssize_t n = recv(g->fd, g->line + g->have, LOBBY_LINE - g->have, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        dismiss(g);
        return;
    }
    g->have += (size_t)n;
    g->line[g->have] = '\0';
    char *end = memchr(g->line, '\n', g->have);
    if (end)
        *end = '\0';
    if ((end && !heard(l, g)) || (!end && g->have == LOBBY_LINE))
        dismiss(g);
}

static void *serve(void *arg)
{
    lobby *l = arg;
    struct pollfd f[2 + CO_STRANGERS];

    while (l->left > 0) {
        bool busy = false;
        f[0] = (struct pollfd){.fd = l->wake[0], .events = POLLIN};
        f[1] = (struct pollfd){.fd = l->listener, .events = POLLIN};
        for (int i = 0; i < CO_STRANGERS; i++) {
            f[2 + i] = (struct pollfd){.fd = l->guests[i].fd, .events = POLLIN};
            busy |= l->guests[i].fd >= 0;
        }
        poll(f, CO_COUNT(f), busy ? LOBBY_TURN_MS : -1);
        if (f[0].revents)
            break;
        for (int i = 0; i < CO_STRANGERS; i++) {
            guest *g = &l->guests[i];
            if (g->fd >= 0 && f[2 + i].revents)
                listen_to(l, g);
            if (g->fd >= 0 && co_now_ns() >= g->until_ns)
                dismiss(g);
        }
        if (f[1].revents)
            admit(l);
    }
    for (int i = 0; i < CO_STRANGERS; i++)
        if (l->guests[i].fd >= 0)
            dismiss(&l->guests[i]);
    close(l->listener);
    l->listener = -1;
    return NULL;
}

static co_err take_port(lobby *l, const char *address)
{
    co_err err = CO_EIO;

    for (int i = 0; i < LOBBY_PORTS && err == CO_EIO; i++)
        err = co_net_listen(&l->listener, address, lobby_port(l->run_id, i));
    return err ? co_fail_in(err, "the meeting point of this step") : CO_OK;
}

co_err lobby_open(lobby **out, const char *address, const char *run_id, int seats, const card *c)
{
    lobby *l = co_zalloc(sizeof *l);
    co_err err = l ? CO_OK : CO_ENOMEM;

    if (err)
        return err;
    l->listener = l->wake[0] = l->wake[1] = -1;
    l->seats = seats;
    l->left = seats - 1;
    snprintf(l->run_id, sizeof l->run_id, "%s", run_id);
    for (int i = 0; i < CO_STRANGERS; i++)
        l->guests[i].fd = -1;
    err = card_text(l->answer, c);
    if (!err && !(l->has = co_array((size_t)seats, sizeof *l->has)))
        err = CO_ENOMEM;
    if (!err)
        err = munge_open(&l->munge);
    if (!err)
        err = co_net_pair(l->wake);
    if (!err)
        err = take_port(l, address);
    if (!err && co_thread_start(&l->thread, serve, l) != 0)
        err = co_fail(CO_EIO, "no thread for the meeting point of this step");
    if (err) {
        close(l->wake[0]);
        close(l->wake[1]);
        close(l->listener);
        munge_close(l->munge);
        co_free(l->has);
        co_free(l);
        return err;
    }
    *out = l;
    return CO_OK;
}

void lobby_close(lobby *l)
{
    if (!l)
        return;
    close(l->wake[1]); /* the other end becomes readable */
    pthread_join(l->thread, NULL);
    close(l->wake[0]);
    munge_close(l->munge);
    explicit_bzero(l->answer, sizeof l->answer);
    co_free(l->has);
    co_free(l);
}
