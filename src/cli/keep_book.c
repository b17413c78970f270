/* keep_book.c -- the log book of a run: made again now and then while it runs, and at its end.
 *
 * A process of its own makes it, so that no step waits for it. While the run goes on that happens every half
 * minute, less often if it takes long. At the end the program waits for it a moment; if the disk does not
 * answer, the process is left behind, and finishes when it can. It touches the folder only while the folder
 * is this run's.
 */
#include "cli/train_int.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "book/book.h"
#include "proc/crew.h"

enum { EVERY_S = 30, SHARE = 50, WAIT_MS = 2000 }; /* making it takes at most a 50th of the time */

/* It outlives the run, so it holds none of the terminal's streams, and stays alive if its parent ends. */
static int make_book(void *ctx)
{
    const training *s = ctx;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_NAME, "cohort-book");
    prctl(PR_SET_PDEATHSIG, 0);
    setsid();
    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
    if (!s->book.last && nice(19) == -1)
        co_errclear(); /* then it takes its turn like the others */
    return co_book_write(co_folder_path(s->folder), co_folder_run_id(s->folder)) == CO_OK ? 0 : 1;
}

static bool start(training *s)
{
    co_child_spec spec = {.main = make_book, .ctx = s};

    s->book.began_s = co_now_s();
    if (co_child_start(&s->book.pid, &s->book.pidfd, &spec) == CO_OK)
        return true;
    s->book.pid = 0;
    return false;
}

/* Has the process ended within so many milliseconds? *good: it made the book. */
static bool ended(training *s, int ms, bool *good)
{
    struct pollfd p = {.fd = s->book.pidfd, .events = POLLIN};
    int status = 0;

    if (poll(&p, 1, ms) <= 0)
        return false;
    *good = waitpid(s->book.pid, &status, 0) == s->book.pid && status == 0;
    close(s->book.pidfd);
    s->book.pid = 0;
    return true;
}

void book_turn(training *s)
{
    double now_s = co_now_s();
    bool good;

    if (!s->app.cfg->book || !s->folder)
        return;
    if (s->book.next_s == 0)
        s->book.next_s = now_s + EVERY_S;
    if (s->book.pid && ended(s, 0, &good)) {
        double pause_s = SHARE * (now_s - s->book.began_s);
        s->book.next_s = now_s + (pause_s > EVERY_S ? pause_s : EVERY_S);
    }
    if (!s->book.pid && now_s >= s->book.next_s && !start(s)) {
        co_errclear(); /* no process to be had now: later, perhaps */
        s->book.next_s = now_s + EVERY_S;
    }
}

void book_end(training *s)
{
    bool good = false;

    if (!s->app.cfg->book || !s->folder)
        return;
    if (s->book.pid) { /* it shows a state that is past */
        kill(s->book.pid, SIGKILL);
        if (!ended(s, WAIT_MS, &good))
            return; /* the kernel holds it: the disk does not answer */
    }
    s->book.last = true;
    if (!start(s)) {
        co_errclear();
        return;
    }
    if (!ended(s, WAIT_MS, &good))
        close(s->book.pidfd); /* left behind */
    s->book.written = good;
}
