/* host.c -- one host: a child of ours (ssh, or our own program if the host is this one) and three pipes.
 *
 *     QUEUED -> CALLING --want--> COPYING --start--> READY --order--> TOLD --where--> RUNNING -> GONE
 *                  +--------------start---------------^                 (the first host; others run at once)
 *
 * Before READY, standard output is what the login prints, and it is dropped. Of standard error the last line
 * is kept: if ssh fails, it says why. After the order both are the job's output. It is passed on in whole
 * lines, or as it comes if there is only one host.
 */
#include "ssh/ssh_int.h"

#include <signal.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char self[] = "/proc/self/exe";
enum { LABELLED_MOST = CO_LINE_MOST + CO_HOST_NAME + 16 }; /* a line with "[host:rank] " before it */

/* --- the child ------------------------------------------------------------------------------------------ */
/* An ssh that may ask the user stays in our process group and leaves Ctrl-C to us; the others get a group
 * of their own. */
_Noreturn static void become(const far_host *h, char *const *argv, pid_t parent, const int in, const int out[2])
{
    static const int keys[] = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP};

    if (!h->asks)
        setpgid(0, 0);
    for (size_t i = 0; h->asks && i < CO_COUNT(keys); i++)
        signal(keys[i], SIG_IGN);
    if (!h->here)
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* our own program does not need it: it sees the end of its input */
    if (getppid() != parent)
        _exit(1); /* it ended before that call */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_NOFILE, &h->c->old_nofile);
    sigprocmask(SIG_SETMASK, &h->c->old_mask, NULL);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out[0], STDOUT_FILENO) >= 0 && dup2(out[1], STDERR_FILENO) >= 0)
        execvp(h->here ? self : argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static co_err start_child(far_host *h, char *const *argv)
{
    int p[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    co_err err = CO_OK;

    for (int i = 0; i < 3 && !err; i++)
        if (pipe2(p[i], O_CLOEXEC) < 0)
            err = co_fail(CO_EIO, "pipe: %m");
    pid_t self_pid = getpid(), pid = err ? -1 : fork();
    if (pid == 0)
        become(h, argv, self_pid, p[0][0], (int[]){p[1][1], p[2][1]});
    if (!err && pid < 0)
        err = co_fail(CO_EIO, "fork: %m");
    int theirs[] = {p[0][0], p[1][1], p[2][1]}, ours[] = {p[0][1], p[1][0], p[2][0]};
    for (int i = 0; i < 3; i++) {
        if (theirs[i] >= 0)
            close(theirs[i]);
        if (err && ours[i] >= 0)
            close(ours[i]);
        else if (!err)
            fcntl(ours[i], F_SETFL, O_NONBLOCK);
    }
    if (err)
        return err;
    h->pid = pid;
    h->in = ours[0];
    h->out[0] = ours[1];
    h->out[1] = ours[2];
    return CO_OK;
}

co_err host_start(far_host *h)
{
    conductor *c = h->c;
    static char *own[] = {"cohort", "launch", "--from-stdin", NULL};
    char **argv =
        h->here ? own : command_words(&c->pool, c->ssh, c->n_ssh, &h->conf, h->spec->name, h->asks, c->remote);

    h->stage = HOST_CALLING;
    h->last[0] = '\0';
    co_str_clear(&h->held[0]);
    co_str_clear(&h->held[1]);
    return argv ? start_child(h, argv) : CO_ENOMEM;
}

/* --- to it ---------------------------------------------------------------------------------------------- */
void host_close_input(far_host *h)
{
    if (h->in >= 0)
        close(h->in);
    h->in = -1;
}

void host_tell(far_host *h, const char *bytes, size_t n)
{
    if (h->in < 0)
        return;
    co_str_addn(&h->unsent, bytes, n);
    host_push(h);
}

/* A failed write means that the child is ending; reap() in conduct.c notices that. */
void host_push(far_host *h)
{
    while (h->in >= 0) {
        bool copies = h->stage == HOST_COPYING;
        const char *from = copies ? h->c->cargo.bytes + h->copied : h->unsent.p + h->sent;
        size_t len = copies ? h->c->cargo.len - h->copied : h->unsent.len - h->sent;
        if (!len)
            break;
        ssize_t n = write(h->in, from, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            host_close_input(h);
        else
            *(copies ? &h->copied : &h->sent) += (size_t)n;
    }
    if (h->stage != HOST_COPYING) {
        if (h->unsent.p)
            explicit_bzero(h->unsent.p, h->unsent.len); /* it contained the token */
        co_str_clear(&h->unsent);
        h->sent = 0;
    }
}

/* --- from it -------------------------------------------------------------------------------------------- */
static void drop(co_str *s, size_t n)
{
    memmove(s->p, s->p + n, s->len - n);
    s->len -= n;
    s->p[s->len] = '\0';
}

/* Text from other programs is shown on terminals: control characters become '?'. */
static void clean_copy(char *out, size_t size, const char *text, size_t len)
{
    snprintf(out, size, "%.*s", (int)len, text);
    for (; *out; out++)
        if ((unsigned char)*out < 0x20 || *out == 0x7f)
            *out = '?';
}

static void keep_last(far_host *h, const char *text, size_t len)
{
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
        len--;
    const char *nl = len ? memrchr(text, '\n', len) : NULL;
    if (nl) {
        len -= (size_t)(nl + 1 - text);
        text = nl + 1;
    }
    if (len)
        clean_copy(h->last, sizeof h->last, text, len);
}

static void heed(far_host *h, const char *words)
{
    conductor *c = h->c;
    char addresses[512];
    int port, at = 0;

    if (strcmp(words, "want") == 0 && h->stage == HOST_CALLING) {
        c->report->say(c, "%s: this cohort is not there yet: copying it (%.1f MB)", co_ssh_shown(h->spec),
                       (double)c->cargo.len * 1e-6);
        h->stage = HOST_COPYING;
        host_push(h);
    } else if (strncmp(words, "stuck ", 6) == 0) {
        snprintf(
            h->stuck, sizeof h->stuck,
            "cohort cannot be copied to %.200s there: make room for it, or put this cohort in PATH there",
            words + 6);
    } else if (strncmp(words, "machine ", 8) == 0) {
        snprintf(h->stuck, sizeof h->stuck,
                 "it is a machine of another kind (%.60s): this cohort does not run there", words + 8);
    } else if (strcmp(words, "start") == 0 && h->stage <= HOST_COPYING) {
        h->stage = HOST_READY;
        h->last[0] = '\0';
        co_str_clear(&h->held[1]); /* a login banner, or warnings of ssh */
        c->report->ready(c, h);
    } else if (h->stage == HOST_TOLD && sscanf(words, "where %d %n", &port, &at) == 1 && at && port > 0 &&
               port < 65536) {
        snprintf(addresses, sizeof addresses, "%s", strcmp(words + at, "-") == 0 ? "" : words + at);
        if (strspn(addresses, "0123456789abcdefABCDEF:.,%") == strlen(addresses))
            c->report->where(c, h, port, addresses);
    } else if (sscanf(words, "end %d", &at) == 1 && at >= 0 && at < 256 && h->stage > HOST_COPYING) {
        h->ended = at;
    }
}

/* Once we are asked to end, we do not wait for a slow reader: bytes that do not fit into the outlet are
 * counted and dropped. */
static void show(conductor *c, int which, const char *bytes, size_t n)
{
    co_outlet *o = co_outlets_at(&c->out, which);

    if (c->asked && co_outlet_overfull(o))
        c->not_shown += n;
    else
        co_outlet_add(o, bytes, n);
}

static void pass(far_host *h, int which, size_t n)
{
    if (n)
        show(h->c, which, h->held[which].p, n);
    drop(&h->held[which], n);
}

/* Takes marks out of standard output. The text between them comes from the login until the job runs, and from
 * the job after that. */
static void take_marks(far_host *h)
{
    co_str *s = &h->held[0];
    char words[600];
    size_t at, end;

    while (mark_find(s->p, s->len, &at, &end, words, sizeof words)) {
        if (h->stage == HOST_RUNNING) {
            size_t behind = end - at;
            memmove(s->p + at, s->p + end, s->len - end);
            s->len -= behind;
            s->p[s->len] = '\0';
        } else {
            drop(s, end);
        }
        heed(h, words);
    }
    if (h->stage < HOST_RUNNING && s->len > JUNK_MOST)
        drop(s, s->len - JUNK_MOST / 2);
}

static void pass_lines(far_host *h, int which, bool all)
{
    co_str *s = &h->held[which];
    size_t keep = all || which ? 0 : mark_begun(s->p, s->len), n = s->len - keep;
    const char *nl = n ? memrchr(s->p, '\n', n) : NULL;
    bool cut = all || h->c->job->n == 1 || (!nl && n > LABELLED_MOST);

    if (!s->len)
        return;
    n = cut ? n : nl ? (size_t)(nl + 1 - s->p) : 0;
    bool open = all && n && s->p[n - 1] != '\n' && h->c->job->n > 1;
    pass(h, which, n);
    if (open)
        show(h->c, which, "\n", 1);
}

static void take(far_host *h, int which, const char *bytes, size_t n)
{
    co_str *s = &h->held[which];

    co_str_addn(s, bytes, n);
    if (!s->p || s->failed)
        return;
    if (which == 0)
        take_marks(h);
    else
        keep_last(h, s->p, s->len);
    if (h->stage == HOST_RUNNING || (which == 1 && h->stage >= HOST_READY))
        pass_lines(h, which, false);
    else if (which == 1 && s->len > JUNK_MOST)
        drop(s, s->len - JUNK_MOST / 2);
}

void host_read(far_host *h, int which)
{
    static char buf[1 << 16];

    for (int i = 0; i < 4 && h->out[which] >= 0; i++) {
        ssize_t n = read(h->out[which], buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && h->pid)
            return;
        if (n > 0) {
            take(h, which, buf, (size_t)n);
            continue;
        }
        if (h->stage >= HOST_READY) /* before READY it is a message of ssh, which h->last keeps */
            pass_lines(h, which, true);
        close(h->out[which]);
        h->out[which] = -1;
    }
}

/* --- its end -------------------------------------------------------------------------------------------- */
void host_kill(far_host *h)
{
    if (h->pid > 0 && h->here && h->in >= 0)
        host_close_input(h); /* the host was asked to end before, so now it kills its workers */
    else if (h->pid > 0)
        kill(h->pid, SIGKILL);
}

void host_hang_up(far_host *h)
{
    if (h->stage != HOST_CALLING && h->stage != HOST_COPYING)
        return;
    if (h->pid > 0)
        kill(h->pid, SIGTERM);
    host_close_input(h);
    h->hung_up = true;
}

void host_end(far_host *h, int sig)
{
    char word[32];

    h->ending = true;
    switch (h->stage) {
    case HOST_QUEUED:
        h->stage = HOST_GONE;
        break;
    case HOST_CALLING:
    case HOST_COPYING:
        if (sig)
            host_hang_up(h);
        break;
    case HOST_READY:
        host_close_input(h);
        break;
    case HOST_TOLD:
    case HOST_RUNNING:
        snprintf(word, sizeof word, "%s\n", sig && sigabbrev_np(sig) ? sigabbrev_np(sig) : "END");
        host_tell(h, word, strlen(word));
        break;
    case HOST_GONE:
        break;
    }
}

/* True also if another process still holds the pipes, such as a master connection that ssh leaves behind. */
bool host_over(far_host *h)
{
    if (h->pid == 0 && h->stage != HOST_GONE && h->stage != HOST_QUEUED)
        for (int k = 0; k < 2; k++)
            host_read(h, k);
    return h->pid == 0 && h->out[0] < 0 && h->out[1] < 0;
}
