/* attach.c -- `cohort attach`: shows a run's screen on another terminal.
 *
 * A run's messages are in its train.log, and its last progress is beside its entry in the list of live runs.
 * attach reads both and shows them as the run itself would. It never writes to the run: any number of users
 * may watch, and leaving (Ctrl-C) changes nothing. When the run ends, attach exits with the exit status in
 * the run's summary.json. */
#include "cli/cli_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "proc/crew.h"

enum { LINES_BEFORE = 40, LOOK_MS = 100, PIECE = 4096, LINE_MOST = 1 << 16 };

typedef struct watch {
    const char *dir;
    int pid; /* 0: it has ended */
    int log;
    co_console *console;
    co_str line; /* a line whose end is not yet written */
} watch;

/* "[2026-11-16 03:04:05] text": the date is for the file. */
static const char *without_date(const char *text)
{
    const char *end = text[0] == '[' ? strstr(text, "] ") : NULL;

    return end && end - text == 20 ? end + 2 : text;
}

static void show_line(watch *w)
{
    co_console_line(w->console, "%s", without_date(co_str_text(&w->line)));
    co_str_clear(&w->line);
}

/* Shows the lines that were added to the log. */
static void show_news(watch *w)
{
    char text[PIECE];
    ssize_t n;

    while ((n = read(w->log, text, sizeof text)) > 0)
        for (const char *at = text, *end; at < text + n; at = end + 1) {
            end = memchr(at, '\n', (size_t)(text + n - at));
            co_str_addn(&w->line, at, (size_t)((end ? end : text + n) - at));
            if (end || w->line.len > LINE_MOST)
                show_line(w);
            if (!end)
                break;
        }
}

/* Puts the file's position before its last lines. */
static void go_back(int fd, int lines)
{
    char text[PIECE];
    off_t at = lseek(fd, 0, SEEK_END);

    while (at > 0 && lines >= 0) {
        ssize_t n = at < PIECE ? at : PIECE;
        if (pread(fd, text, (size_t)n, at - n) != n)
            break;
        while (n > 0 && !(text[n - 1] == '\n' && lines-- == 0)) {
            n--;
            at--;
        }
        if (n > 0)
            break;
    }
    lseek(fd, at, SEEK_SET);
}

static void show_progress(watch *w)
{
    co_progress p;
    char metric[16];

    if (w->pid && co_live_see(w->pid, &p, metric))
        co_console_progress(w->console, &p, false);
}

/* Shows the run until it ends (true) or the user leaves (false). */
static bool follow(watch *w, int ended, int signals)
{
    struct pollfd fds[] = {{.fd = ended, .events = POLLIN}, {.fd = signals, .events = POLLIN}};

    for (;;) {
        show_news(w);
        show_progress(w);
        if (poll(fds, CO_COUNT(fds), LOOK_MS) < 0 && errno != EINTR)
            return false;
        if (co_signals_next(signals))
            return false;
        if (fds[0].revents & POLLIN) {
            show_news(w);
            return true;
        }
    }
}

/* The run's own exit status. */
static int status_of(const char *dir)
{
    static const struct {
        const char *name;
        int status;
    } ends[] = {{"done", CO_EXIT_DONE}, {"stopped", CO_EXIT_STOPPED}, {"failed", CO_EXIT_FAILED}};
    char path[PATH_MAX];
    json_t *v = NULL;
    int status = -1;

    snprintf(path, sizeof path, "%s/summary.json", dir);
    const char *name =
        co_fs_exists(path) && co_json_read(&v, path, 1 << 20) == CO_OK ? co_json_str(v, "status") : NULL;
    for (size_t i = 0; name && i < CO_COUNT(ends); i++)
        if (strcmp(ends[i].name, name) == 0)
            status = ends[i].status;
    json_decref(v);
    co_errclear();
    if (status < 0) {
        co_say("%s ended without a summary: it was killed. To go on: %s train run.dir=%s ckpt_path=auto", dir,
               app_program(), dir);
        return CO_EXIT_FAILED;
    }
    return status;
}

static int attach(const char *dir, int pid)
{
    char path[PATH_MAX];
    watch w = {.dir = dir, .pid = pid};
    int signals = -1, ended = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    bool over = ended < 0;

    snprintf(path, sizeof path, "%s/train.log", dir);
    w.log = open(path, O_RDONLY | O_CLOEXEC);
    if (w.log < 0)
        return co_fail(CO_EINPUT, "open %s: %m", path), co_say_error(CO_EINPUT);
    co_err err = co_console_open(&w.console, STDERR_FILENO, CO_CONSOLE_AUTO);
    if (!err)
        err = co_signals_open(&signals);
    if (!err) {
        go_back(w.log, LINES_BEFORE);
        if (over)
            show_news(&w);
        else
            over = follow(&w, ended, signals);
    }
    co_console_close(w.console);
    co_str_fini(&w.line);
    close(w.log);
    if (ended >= 0)
        close(ended);
    if (signals >= 0)
        close(signals);
    if (err)
        return co_say_error(err);
    if (over)
        return status_of(dir);
    co_say("detached; the run goes on (pid %d)", pid);
    return CO_EXIT_DONE;
}

/* Without an argument: the only run there is. */
static int attach_line(const line *l, const co_live_run *runs, int n)
{
    const char *word = l->n ? l->words[0] : NULL;
    const co_live_run *r = word ? live_find(runs, n, word) : n == 1 ? runs : NULL;

    if (l->n > 1)
        return co_fail(CO_EINPUT, "attach takes one run: a pid or a run folder"), co_say_error(CO_EINPUT);
    if (r && r->guest) {
        co_notice("pid %d is a guest: the record and the progress of this run are on %s; attach to it there",
                  r->pid, r->record_host[0] ? r->record_host : "the first host");
        return CO_EXIT_USAGE;
    }
    if (r && r->launch[0]) {
        co_notice("pid %d is a launch (%s): its output is where it was started, and in its --log-dir", r->pid,
                  r->launch);
        return CO_EXIT_USAGE;
    }
    if (r)
        return attach(r->dir, r->pid);
    if (word && has(word, "train.log"))
        return attach(word, 0);
    if (word)
        co_notice("no run is \"%s\"%s", word, n ? "; there are:" : "; there is none on this machine");
    else
        co_notice(n ? "there are %d runs; give the pid or the folder of one:" : "no runs on this machine", n);
    live_print(runs, n, false, stderr);
    return CO_EXIT_USAGE;
}

int cmd_attach(int argc, char **argv)
{
    co_live_run *runs = NULL;
    int n = 0, status;
    line l;

    if (line_parse(&l, argc, argv, false, NULL) != CO_OK)
        return co_say_error(CO_EINPUT);
    if (l.help)
        status = show_usage("attach");
    else {
        co_err err = co_live_list(&runs, &n);
        status = err ? co_say_error(err) : attach_line(&l, runs, n);
    }
    co_free(runs);
    line_free(&l);
    return status;
}
