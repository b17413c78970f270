/* pmi.c -- MPICH's mpirun (Hydra), Intel's, and other launchers that speak PMI-1 on the descriptor PMI_FD:
 * lines of key=value pairs.
 *
 *     cmd=init pmi_version=1 pmi_subversion=1     cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0
 *     cmd=get_my_kvsname                          cmd=my_kvsname kvsname=kvs_1
 *     cmd=put kvsname=kvs_1 key=k value=v         cmd=put_result rc=0
 *     cmd=get kvsname=kvs_1                       cmd=get_result rc=0
 *         key=PMI_process_mapping                     value=(vector,(0,1,2),(1,1,1))
 *     cmd=barrier_in                              cmd=barrier_out            (when all have sent barrier_in)
 *     cmd=get kvsname=kvs_1 key=k                 cmd=get_result rc=0 value=v
 *     cmd=finalize                                cmd=finalize_ack
 *
 * The launcher uses the descriptor up, so the workers' environment does not name it (job/env.c). Only a
 * training over the link mpi leaves it open (co_place.for_mpi): MPI then sends init again on it. PMI protects
 * the card, token included, no better than mpirun's own connections are protected, and most installations do
 * not encrypt them. After a failure the descriptor stays open until the process ends: Hydra kills all
 * processes when one closes it without `finalize`, and nobody would read the error message.
 */
#include "place/place_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "place/times_int.h"

typedef struct pmi {
    int fd;
    bool failed;   /* the connection is of no further use */
    char kvs[300]; /* the key-value space */
} pmi;

/* Reads one line, a byte at a time, so that nothing after it is consumed. */
static co_err hear(char line[PMI_LINE], int fd, waiting *w)
{
    for (size_t have = 0; have < PMI_LINE - 1;) {
        struct pollfd f = {.fd = fd, .events = POLLIN};
        int ms = waiting_turn(w);
        if (ms == 0)
            return co_fail(CO_ETIMEOUT, "PMI does not answer");
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

static co_err ask(char answer[PMI_LINE], pmi *x, waiting *w, const char *line, size_t len)
{
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN); /* if the server is gone, write fails instead */
    co_err err = co_fs_write_all(x->fd, line, len, "PMI_FD");

    signal(SIGPIPE, on_pipe);
    if (!err)
        err = hear(answer, x->fd, w);
    x->failed = err != CO_OK;
    return err;
}

/* Sends a line and reads the answer, which must be `want` with rc=0. CO_EFAIL: rc is not 0. */
__attribute__((format(printf, 5, 6))) static co_err say(char answer[PMI_LINE], pmi *x, waiting *w,
                                                        const char *want, const char *fmt, ...)
{
    char line[PMI_LINE], got[64], rc[16];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line)
        return co_fail(CO_EINPUT, "PMI: a line of %d bytes", n);
    CO_TRY(ask(answer, x, w, line, (size_t)n));
    if (!pmi_value(got, sizeof got, answer, "cmd") || strcmp(got, want) != 0) {
        x->failed = true;
        return co_fail(CO_EFORMAT, "PMI answered something other than %s", want);
    }
    if (pmi_value(rc, sizeof rc, answer, "rc") && strcmp(rc, "0") != 0)
        return co_fail(CO_EFAIL, "PMI refused: %s, rc=%s", want, rc);
    return CO_OK;
}

static co_err greet(pmi *x, waiting *w)
{
    char line[PMI_LINE];

    CO_TRY(say(line, x, w, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1\n"));
    CO_TRY(say(line, x, w, "my_kvsname", "cmd=get_my_kvsname\n"));
    return pmi_value(x->kvs, sizeof x->kvs, line, "kvsname")
               ? CO_OK
               : co_fail(CO_EFORMAT, "PMI names no key-value space");
}

static co_err enter(co_place *p, waiting *w)
{
    int fd;

    CO_TRY(env_whole(&fd, "PMI_FD", 3, 1 << 20, -1));
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return co_fail(
            CO_EINPUT,
            "there is no PMI_FD through which the processes could find each other. COHORT_TOKEN in the"
            " environment of all (`cohort token` makes one) with --nnodes=%d --rdzv-endpoint=HOST:29400, "
            "where HOST is the first host, works without it",
            p->seats);
    pmi *x = p->channel = co_zalloc(sizeof *x);
    if (!x)
        return CO_ENOMEM;
    x->fd = fd;
    CO_TRY(greet(x, w));
    place_name_run(p, x->kvs);
    return CO_OK;
}

static void leave(co_place *p)
{
    co_patience patience = co_patience_s(FAREWELL_S);
    waiting w = waiting_begin(p, &patience, NULL);
    char line[PMI_LINE];
    pmi *x = p->channel;

    if (x && !x->failed && say(line, x, &w, "finalize_ack", "cmd=finalize\n") == CO_OK)
        close(x->fd);
    co_free(x);
    p->channel = NULL;
}

/* Some servers do not have this key; then we do not know the hosts. */
static co_err learn_hosts(co_place *p, waiting *w)
{
    char line[PMI_LINE], text[PMI_LINE];
    int host[CO_MAX_HOSTS];
    pmi *x = p->channel;
    co_err err = say(line, x, w, "get_result", "cmd=get kvsname=%s key=PMI_process_mapping\n", x->kvs);

    if (err)
        return err == CO_EFAIL ? CO_OK : err;
    if (pmi_value(text, sizeof text, line, "value") && pmi_hosts(host, p->seats, text))
        layout_take(p, host);
    return CO_OK;
}

static co_err pass(co_place *p, char text[CARD_TEXT], waiting *w)
{
    char line[PMI_LINE];
    pmi *x = p->channel;

    if (p->seat == 0)
        CO_TRY(say(line, x, w, "put_result", "cmd=put kvsname=%s key=cohort-card value=%s\n", x->kvs, text));
    co_err err = say(line, x, w, "barrier_out", "cmd=barrier_in\n");
    if (err == CO_ETIMEOUT)
        return waiting_over(w);
    if (err || p->seat == 0)
        return err;
    CO_TRY(say(line, x, w, "get_result", "cmd=get kvsname=%s key=cohort-card\n", x->kvs));
    return pmi_value(text, CARD_TEXT, line, "value")
               ? CO_OK
               : co_fail(CO_EFORMAT, "PMI has no card from the first process");
}

static co_err share(co_place *p, card *c, const co_patience *patience, void (*talk)(const char *))
{
    waiting w = waiting_begin(p, patience, talk);
    char text[CARD_TEXT] = "";
    co_err err = p->channel ? CO_OK : enter(p, &w); /* no channel yet if all tasks are on this host */

    if (!err && p->seat == 0)
        err = card_text(text, c);
    if (!err)
        err = pass(p, text, &w);
    if (!err && p->seat > 0)
        err = card_parse(c, text);
    explicit_bzero(text, sizeof text);
    if (err)
        return co_fail_in(err, "%s", p->name);
    if (!p->for_mpi) /* MPI greets the server again, on the same connection */
        leave(p);
    return CO_OK;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    co_patience patience = co_patience_s(ANSWER_S);
    waiting w = waiting_begin(p, &patience, NULL);

    if (!env_text("PMI_RANK") || !env_text("PMI_SIZE"))
        return CO_OK;
    CO_TRY(env_whole(&p->seats, "PMI_SIZE", 1, 1 << 20, 1));
    CO_TRY(env_whole(&p->seat, "PMI_RANK", 0, p->seats - 1, 0));
    if (slurm_is_step(p->seat, p->seats)) /* srun set PMI_RANK: leave it to slurm.c, which knows more */
        return CO_OK;
    CO_TRY(env_whole(&p->tasks, "MPI_LOCALNRANKS", 1, p->seats, 1));
    CO_TRY(env_whole(&p->task, "MPI_LOCALRANKID", 0, p->tasks - 1, 0));
    snprintf(p->name, sizeof p->name, "mpirun (PMI)");
    if (layout_alone(p) || p->seats > CO_MAX_HOSTS)
        return CO_OK;
    co_err err = enter(p, &w);
    if (!err)
        err = learn_hosts(p, &w);
    return err ? co_fail_in(err, "%s", p->name) : CO_OK;
}

const place_row place_pmi = {
    .find = find, .share = share, .close = leave, .one_each = "mpirun -n %d -ppn 1", .one_terminal = true};
