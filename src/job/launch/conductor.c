/* conductor.c -- while a training runs on a host of --hosts, a thread reads what the conductor says: the
 * name of a signal, END, or an empty line as a sign of life (ssh/ssh.h). Each becomes a signal to this
 * process, where it is handled like one from the terminal. The end of the conductor, or a minute of
 * silence, is SIGTERM.
 */
#include "job/launch/launch_int.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ssh/ssh.h"

struct conductor {
    int fd, stop; /* the connection; an eventfd that ends the thread */
    pthread_t thread;
    char line[32];
    size_t len;
};

static void hear(const char *word)
{
    static const int known[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1};

    if (strcmp(word, "END") == 0)
        kill(getpid(), SIGTERM);
    for (size_t i = 0; i < CO_COUNT(known); i++)
        if (strcmp(word, sigabbrev_np(known[i])) == 0)
            kill(getpid(), known[i]);
}

/* False: nobody is there any more. */
static bool read_words(conductor *c)
{
    char bytes[256];
    ssize_t n = read(c->fd, bytes, sizeof bytes);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            c->line[c->len] = '\0';
            c->len = 0;
            hear(c->line);
        } else if (c->len < sizeof c->line - 1) {
            c->line[c->len++] = bytes[i];
        }
    }
    return n > 0;
}

static void *follow(void *ctx)
{
    conductor *c = ctx;
    struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN}, {.fd = c->stop, .events = POLLIN}};

    for (;;) {
        int n = poll(fds, CO_COUNT(fds), CO_CONTROL_SILENT_MS);
        if (n < 0 && errno == EINTR)
            continue;
        if (fds[1].revents)
            return NULL;
        if (n > 0 && read_words(c))
            continue;
        co_notice("the command that started the training %s; the training ends",
                  n == 0 ? "has been silent for a minute" : "is gone");
        kill(getpid(), SIGTERM);
        return NULL;
    }
}

co_err conductor_start(conductor **out, int fd)
{
    conductor *c = co_zalloc(sizeof *c);
    sigset_t all, before;

    if (!c)
        return CO_ENOMEM;
    c->fd = fd;
    c->stop = eventfd(0, EFD_CLOEXEC);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are for the other threads */
    int failed = c->stop < 0 ? errno : pthread_create(&c->thread, NULL, follow, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        if (c->stop >= 0)
            close(c->stop);
        co_free(c);
        return co_fail(CO_EIO, "a thread for what the conductor says: %s", strerror(failed));
    }
    *out = c;
    return CO_OK;
}

void conductor_stop(conductor *c)
{
    uint64_t one = 1;

    if (!c)
        return;
    if (write(c->stop, &one, sizeof one) == (ssize_t)sizeof one)
        pthread_join(c->thread, NULL);
    close(c->stop);
    co_free(c);
}
