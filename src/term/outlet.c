/* outlet.c -- standard output and error without ever waiting for whoever reads them.
 *
 * A stopped terminal or pager must not keep us from seeing deaths and signals. Terminals and pipes are opened
 * once more, for a descriptor of our own that does not block (the flag belongs to the open file, which others
 * share). What does not go out is held; from CO_OUTLET_FULL on the caller reads no more of the workers'
 * output, and they wait in their turn. While the job ends workers do not wait, because they must get to save
 * their work; then up to CO_OUTLET_MOST is held. A descriptor that cannot be opened anew (a socket, another
 * user's terminal) is written to as it is.
 *
 * Standard output and standard error are a pair: one queue if they end up in the same place, two if not.
 */
#include "term/term.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void co_outlet_open(co_outlet *o, int fd)
{
    struct stat st;
    char path[32];

    *o = (co_outlet){.fd = fd, .tty = isatty(fd)};
    if (fstat(fd, &st) != 0 || (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode)))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own >= 0) {
        o->fd = own;
        o->own = true;
    }
}

void co_outlet_add(co_outlet *o, const char *bytes, size_t n)
{
    if (!o->gone)
        co_str_addn(&o->held, bytes, n);
}

/* A reader that is always a little behind never lets `held` run empty. So bytes that went out are dropped as
 * soon as they are more than the bytes that wait: `held` is at most twice what waits, and each byte is moved
 * at most once. */
static void drop_written(co_outlet *o)
{
    if (o->done <= o->held.len / 2)
        return;
    memmove(o->held.p, o->held.p + o->done, o->held.len - o->done);
    o->held.len -= o->done;
    o->done = 0;
}

void co_outlet_push(co_outlet *o)
{
    while (o->done < o->held.len) {
        ssize_t n = write(o->fd, o->held.p + o->done, o->held.len - o->done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            drop_written(o);
            return;
        }
        o->failing = n < 0 && errno != EPIPE;
        if (o->failing && !o->error)
            o->error = errno;
        o->gone = n < 0 && errno == EPIPE;
        if (n < 0) /* what is held is lost; a disk that was full may have room for what comes next */
            break;
        o->done += (size_t)n;
    }
    co_str_clear(&o->held);
    o->done = 0;
}

bool co_outlet_waits(const co_outlet *o)
{
    return o->done < o->held.len;
}

bool co_outlet_full(const co_outlet *o)
{
    return o->held.len - o->done > CO_OUTLET_FULL;
}

bool co_outlet_overfull(const co_outlet *o)
{
    return o->held.len - o->done > CO_OUTLET_MOST;
}

void co_outlet_close(co_outlet *o)
{
    if (o->own)
        close(o->fd);
    co_str_fini(&o->held);
}

/* --- both ---------------------------------------------------------------------------------------------- */
static bool same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
           x.st_rdev == y.st_rdev;
}

void co_outlets_open(co_outlets *o, int out_fd, int err_fd)
{
    *o = (co_outlets){.n = same_file(out_fd, err_fd) ? 1 : 2};
    co_outlet_open(&o->each[0], out_fd);
    if (o->n == 2)
        co_outlet_open(&o->each[1], err_fd);
}

co_outlet *co_outlets_at(co_outlets *o, int which)
{
    return &o->each[which < o->n ? which : 0];
}

void co_outlets_push(co_outlets *o, struct pollfd wait[2])
{
    for (int i = 0; i < 2; i++) {
        wait[i] = (struct pollfd){.fd = -1, .events = POLLOUT};
        if (i >= o->n)
            continue;
        co_outlet_push(&o->each[i]);
        if (co_outlet_waits(&o->each[i]))
            wait[i].fd = o->each[i].fd;
    }
}

bool co_outlets_full(co_outlets *o)
{
    return co_outlet_full(co_outlets_at(o, 0)) || co_outlet_full(co_outlets_at(o, 1));
}

int co_outlets_broken(co_outlets *o, char *line, size_t size)
{
    static const char *const names[] = {"standard output", "standard error"};

    for (int i = 0; i < o->n; i++) {
        co_outlet *one = &o->each[i];
        int to = o->n == 2 ? 1 - i : i;
        if (!one->error || one->error_said || o->each[to].failing)
            continue;
        one->error_said = true;
        snprintf(line, size, "cohort: %s: %s: what could not be written is lost, the job goes on\n",
                 o->n == 2 ? names[i] : "standard output and error", strerror(one->error));
        return to;
    }
    return -1;
}

void co_outlets_drain(co_outlets *o, int patience_ms)
{
    for (int i = 0; i < o->n; i++) {
        co_outlet *one = &o->each[i];
        while (co_outlet_push(one), co_outlet_waits(one)) {
            struct pollfd p = {.fd = one->fd, .events = POLLOUT};
            if (poll(&p, 1, patience_ms) <= 0)
                break;
        }
    }
}

void co_outlets_close(co_outlets *o)
{
    for (int i = 0; i < o->n; i++)
        co_outlet_close(&o->each[i]);
}
