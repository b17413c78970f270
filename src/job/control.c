/* control.c -- reads lines from the process that started us: the name of a signal, END, or an empty line as a
 * sign of life. When that process is gone, the job ends. */
#include "job/job_int.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* When silence counts as its end; 0: never. */
uint64_t control_due_ns(const job *j)
{
    return j->control.fd < 0 ? 0 : j->control.heard_ns + CO_CONTROL_SILENT_MS * UINT64_C(1000000);
}

static void hear_word(job *j, const char *word)
{
    bool ends = j->request.sig || j->orders.over || j->orders.err;

    if (strcmp(word, "END") == 0 && !ends)
        request_end(j, SIGTERM, CO_ORIGIN_CONDUCTOR);
    for (int sig = 1; sig < NSIG; sig++)
        if (sigabbrev_np(sig) && strcmp(sigabbrev_np(sig), word) == 0 &&
            sigismember(&j->spec->signals, sig) == 1)
            request_end(j, sig, CO_ORIGIN_CONDUCTOR);
}

static void control_ended(job *j, const char *how)
{
    co_screen_sayf(&j->screen, "%s: the command that started the job %s; the job ends", j->host, how);
    j->control.fd = -1;
    request_end(j, SIGTERM, CO_ORIGIN_CONDUCTOR);
}

void control_read(job *j)
{
    char bytes[256];
    ssize_t n = read(j->control.fd, bytes, sizeof bytes);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (co_now_ns() >= control_due_ns(j))
            control_ended(j, "has been silent for a minute");
        return;
    }
    if (n <= 0) {
        control_ended(j, "is gone");
        return;
    }
    j->control.heard_ns = co_now_ns();
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            j->control.line[j->control.len] = '\0';
            j->control.len = 0;
            hear_word(j, j->control.line);
        } else if (j->control.len < sizeof j->control.line - 1) {
            j->control.line[j->control.len++] = bytes[i];
        }
    }
}
