/* outlet.c -- writes standard output and error without ever waiting for the reader.
 *
 * A stopped terminal or pager must not keep us from noticing deaths and signals. So we open terminals and
 * pipes a second time, to get a non-blocking descriptor of our own (O_NONBLOCK belongs to the open file,
 * which other processes share). Bytes that cannot be written yet are held. From CO_OUTLET_FULL on the caller
 * stops reading the workers' output, so the workers wait too. While the job ends, workers must be able to
 * save their work and do not wait; then up to CO_OUTLET_MOST is held. A descriptor that cannot be opened anew
 * (a socket, another user's terminal) is written to directly.
 *
 * Standard output and standard error are a pair: one queue if they lead to the same file, otherwise two.
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

/* With a reader that is always a little behind, `held` is never empty. So written bytes are removed as soon
 * as they outnumber the waiting bytes: `held` is at most twice what waits, and each byte is moved at most
 * once. */
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
        if (n < 0) /* the held bytes are lost; a full disk may have room again for later output */
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
