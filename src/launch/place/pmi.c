/* pmi.c -- MPICH's mpirun (Hydra), Intel's, and whoever else speaks PMI-1 on the descriptor PMI_FD: lines of key=value words.
 *
 *     cmd=init pmi_version=1 pmi_subversion=1     cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
 *     cmd=get_my_kvsname                          cmd=my_kvsname kvsname=kvs_1
 *     cmd=put kvsname=kvs_1 key=k value=v         cmd=put_result rc=0
 *     cmd=barrier_in                              cmd=barrier_out            (when all have said it)
 *     cmd=get kvsname=kvs_1 key=k                 cmd=get_result rc=0 value=v
 *     cmd=finalize                                cmd=finalize_ack
 *
 * The descriptor is used up here; the workers' environment does not name it (job/env.c). What goes over it is as safe as the launcher's own connections, which are plain in most installations.
 */
#include "launch/place/place_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

/* One line; a byte at a time, as nothing may be read past it that is not ours yet. */
static co_err hear(char line[PMI_LINE], int fd, waiting *w)
{
    for (size_t have = 0; have < PMI_LINE - 1;) {
        struct pollfd f = {.fd = fd, .events = POLLIN};
        int ms = waiting_turn(w);
        if (ms == 0)
            return waiting_over(w);
        if (poll(&f, 1, ms) <= 0)
            continue;
        ssize_t n = read(fd, line + have, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return co_fail(CO_EPEER, "PMI closed the connection");
        if (line[have] == '\n') {
            line[have] = '\0';
            return CO_OK;
        }
        have++;
    }
    return co_fail(CO_EFORMAT, "PMI sent a line without an end");
}

/* Says a line, hears the answer, which must be `want` and well. */
__attribute__((format(printf, 5, 6))) static co_err say(char answer[PMI_LINE], int fd, waiting *w,
                                                        const char *want, const char *fmt, ...)
{
    char line[PMI_LINE], got[64], rc[16];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line)
        return co_fail(CO_EINPUT, "PMI: a line of %d bytes", n);
    CO_TRY(co_fs_write_all(fd, line, (size_t)n, "PMI_FD"));
    CO_TRY(hear(answer, fd, w));
    if (!pmi_value(got, sizeof got, answer, "cmd") || strcmp(got, want) != 0)
        return co_fail(CO_EFORMAT, "PMI answered something else than %s", want);
    if (pmi_value(rc, sizeof rc, answer, "rc") && strcmp(rc, "0") != 0)
        return co_fail(CO_EFAIL, "PMI refused: %s, rc=%s", want, rc);
    return CO_OK;
}

static co_err talk(int fd, co_place *p, char text[CARD_TEXT], waiting *w)
{
    char line[PMI_LINE], kvs[300];

    CO_TRY(say(line, fd, w, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n"));
    CO_TRY(say(line, fd, w, "my_kvsname", "cmd=get_my_kvsname\n"));
    if (!pmi_value(kvs, sizeof kvs, line, "kvsname"))
        return co_fail(CO_EFORMAT, "PMI names no key-value space");
    place_name_run(p, kvs);
    if (p->seat == 0)
        CO_TRY(say(line, fd, w, "put_result", "cmd=put kvsname=%s key=cohort-card value=%s\n", kvs, text));
    CO_TRY(say(line, fd, w, "barrier_out", "cmd=barrier_in\n"));
    if (p->seat > 0) {
        CO_TRY(say(line, fd, w, "get_result", "cmd=get kvsname=%s key=cohort-card\n", kvs));
        if (!pmi_value(text, CARD_TEXT, line, "value"))
            return co_fail(CO_EFORMAT, "PMI has no word from the first process");
    }
    return say(line, fd, w, "finalize_ack", "cmd=finalize\n");
}

static co_err share(co_place *p, card *c, const co_patience *patience, void (*told)(const char *))
{
    waiting w = waiting_begin(p, patience, told);
    char text[CARD_TEXT] = "";
    int fd;

    CO_TRY(env_whole(&fd, "PMI_FD", 3, 1 << 20, -1));
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return co_fail(
            CO_EINPUT,
            "%s: there is no PMI_FD through which the processes could find each other. COHORT_TOKEN in the"
            " environment of all (`cohort token` makes one) with --nnodes=%d --rdzv-endpoint=HOST:29400, "
            "HOST being"
            " the first one's, works without it",
            p->name, p->seats);
    if (p->seat == 0)
        CO_TRY(card_text(text, c));
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN); /* it may be gone; then write says so */
    co_err err = talk(fd, p, text, &w);
    signal(SIGPIPE, on_pipe);
    if (!err) /* else it ends with us: Hydra kills who hangs up without a farewell, before anybody reads why we failed */
        close(fd);
    if (!err && p->seat > 0)
        err = card_parse(c, text);
    explicit_bzero(text, sizeof text);
    return err ? co_fail_in(err, "%s", p->name) : CO_OK;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    if (!env_text("PMI_RANK") || !env_text("PMI_SIZE"))
        return CO_OK;
    CO_TRY(env_whole(&p->seats, "PMI_SIZE", 1, 1 << 20, 1));
    CO_TRY(env_whole(&p->seat, "PMI_RANK", 0, p->seats - 1, 0));
    if (slurm_is_step(p->seat, p->seats)) /* srun's own: Slurm knows more about it */
        return CO_OK;
    CO_TRY(env_whole(&p->tasks, "MPI_LOCALNRANKS", 1, p->seats, 1));
    CO_TRY(env_whole(&p->task, "MPI_LOCALRANKID", 0, p->tasks - 1, 0));
    p->tasks_most = p->tasks;
    p->nodes = p->seats % p->tasks == 0 ? p->seats / p->tasks : 0; /* if all hosts have as many */
    p->node = p->tasks == 1 ? p->seat : p->nodes == 1 ? 0 : -1;
    snprintf(p->name, sizeof p->name, "mpirun (PMI)");
    return CO_OK;
}

const place_row place_pmi = {
    .find = find, .share = share, .one_each = "mpirun -n %d -ppn 1", .one_terminal = true};
