/* sweep.c -- `cohort train -m`: runs the jobs of a sweep one after the other, each as a separate `cohort
 * train` in logs/TASK/multiruns/DATE/NUMBER.
 *
 * All jobs are checked before the first one starts (sweep_check.c). A signal to stop is passed on to the
 * running job, and the sweep ends with it. A failed job does not stop the others. With run.dir=FOLDER the
 * jobs are in FOLDER/NUMBER, and the same line with ckpt_path=auto continues the sweep.
 *
 * multirun.json has a row for each job that has ended, and is written after each of them. A job's figures
 * come from the summary.json of this start. A job that was refused leaves the summary of an earlier start as
 * it was; that one is not used. */
#include "cli/sweep_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/program.h"

/* The words in which a job differs from the others: "optim.lr=0.1 seed=2". */
static void add_label(co_str *out, const sweep *s, int job)
{
    size_t before = out->len;

    for (int i = 0; i < s->line->n; i++)
        if (co_conf_jobs_swept(s->jobs, i))
            co_str_addf(out, "%s%s", out->len > before ? " " : "", co_conf_jobs_words(s->jobs, job)[i]);
}

/* Makes the folder. If it exists, another sweep started in the same second: a number is added to the name. */
static co_err make_root(sweep *s)
{
    char *first = s->root, *slash = strrchr(first, '/');
    if (s->given || !slash)
        return co_fs_mkdirs(s->root);
    *slash = '\0';
    co_err err = co_fs_mkdirs(first);
    *slash = '/';
    for (int n = 2; !err && mkdir(s->root, 0777) < 0; n++) {
        if (errno != EEXIST)
            return co_fail(CO_EIO, "make %s: %m", s->root);
        char *next = co_sprintf("%s_%d", first, n);
        if (!next)
            return CO_ENOMEM;
        if (s->root != first)
            co_free(s->root);
        s->root = next;
    }
    if (s->root != first)
        co_free(first);
    return err;
}

typedef struct signals {
    sigset_t set;  /* those that the sweep waits for */
    sigset_t mask; /* the mask before, for the jobs */
} signals;

static void hold_signals(signals *out)
{
    static const int all[] = {SIGINT, SIGTERM, SIGUSR1, SIGCHLD};

    sigemptyset(&out->set);
    for (size_t i = 0; i < CO_COUNT(all); i++)
        sigaddset(&out->set, all[i]);
    sigprocmask(SIG_BLOCK, &out->set, &out->mask);
}

static void become_job(char **argv, const sigset_t *mask, pid_t parent)
{
    int none = open("/dev/null", O_WRONLY | O_CLOEXEC);

    setpgid(0, 0); /* Ctrl-C reaches the job through the sweep only, so that it counts once */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1); /* the sweep ended before that call */
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (none >= 0)
        dup2(none, STDOUT_FILENO);
    setenv(SWEEP_JOB, "1", 1);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Waits for the job, passes signals to stop on to it, and sets *stopped if there was one. */
static int wait_job(pid_t pid, const sigset_t *set, bool *stopped)
{
    int status = 0, sig;

    for (;;) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (sigwait(set, &sig) == 0 && sig != SIGCHLD) {
            *stopped = true;
            kill(pid, sig);
        }
    }
}

static co_err start_job(pid_t *pid, const sweep *s, int job, const char *dir, const sigset_t *mask)
{
    const char *const *words = co_conf_jobs_words(s->jobs, job);
    char *run_dir = co_conf_word("run.dir", dir);
    const char **argv = co_array((size_t)s->line->n + 6, sizeof *argv);
    int n = 0;

    if (argv && run_dir) {
        argv[n++] = co_program_called();
        argv[n++] = "train";
        if (s->line->config_dir) {
            argv[n++] = "--config-dir";
            argv[n++] = s->line->config_dir;
        }
        for (int i = 0; i < s->line->n; i++)
            argv[n++] = words[i];
        argv[n++] = run_dir;
        fflush(NULL);
        pid_t self = getpid();
        *pid = fork();
        if (*pid == 0)
            become_job((char **)(uintptr_t)argv, mask, self);
    }
    co_err err = !argv || !run_dir ? CO_ENOMEM : *pid < 0 ? co_fail(CO_EIO, "fork: %m") : CO_OK;
    co_free(argv);
    co_free(run_dir);
    return err;
}

/* How a job ended. */
typedef struct outcome {
    int status;         /* its exit status */
    bool stopped;       /* by a signal, before it was done */
    struct stat before; /* its summary.json as an earlier start left it; st_ino 0: there was none */
    char *dir, *summary_path;
} outcome;

/* The job's summary.json, the caller's; NULL if it wrote none. A job that had all its steps before is done
 * without writing one; then the summary of the earlier start is right. */
static json_t *read_summary(const outcome *o)
{
    struct stat now;
    json_t *summary = NULL;

    if (stat(o->summary_path, &now) != 0)
        return NULL;
    bool old = now.st_ino == o->before.st_ino && now.st_mtim.tv_sec == o->before.st_mtim.tv_sec &&
               now.st_mtim.tv_nsec == o->before.st_mtim.tv_nsec;
    if (old && o->status != CO_EXIT_DONE)
        return NULL;
    if (co_json_read(&summary, o->summary_path, 1 << 20) != CO_OK)
        co_errclear();
    return summary;
}

static json_t *row_of(int job, const char *words, const outcome *o, const json_t *summary)
{
    const char *how = summary ? co_json_str(summary, "status") : NULL;
    const char *sha = summary ? co_json_str(summary, "weights_sha256") : NULL;
    json_t *metrics = summary ? json_object_get(summary, "metrics") : NULL;

    return json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:o}", "job", job, "words", words, "status",
                     o->stopped ? "stopped"
                     : how      ? how
                                : "failed",
                     "exit_status", o->stopped ? CO_EXIT_STOPPED : o->status, "dir", o->dir, "weights_sha256",
                     sha ? sha : "", "metrics", metrics ? json_incref(metrics) : json_object());
}

static co_err write_rows(const sweep *s)
{
    char *path = co_sprintf("%s/multirun.json", s->root);
    co_err err = path ? co_json_write(s->rows, path) : CO_ENOMEM;

    co_free(path);
    return err;
}

static co_err keep_row(sweep *s, int job, const outcome *o)
{
    co_str label = {0};

    add_label(&label, s, job);
    co_err err = co_str_err(&label);
    if (!err) {
        json_t *summary = read_summary(o), *row = row_of(job, co_str_text(&label), o, summary);
        json_decref(summary);
        if (!row || json_array_append_new(s->rows, row) != 0)
            err = co_fail(CO_ENOMEM, "out of memory");
    }
    co_str_fini(&label);
    return err ? err : write_rows(s);
}

/* Says which jobs a stopped sweep left out, and the line that continues it. */
static void say_rest(const sweep *s, int last, bool done)
{
    int count = co_conf_jobs_count(s->jobs), left = count - last - 1;
    const char *where = done ? "after" : "in";
    co_str text = {0};
    char *dir = co_conf_word("run.dir", s->root);

    co_str_addf(&text, "%s train -m", app_program());
    if (s->line->config_dir) {
        co_str_add(&text, " --config-dir");
        add_shell_word(&text, s->line->config_dir);
    }
    for (int i = 0; i < s->line->n; i++)
        if (!word_is_place(s->line->words[i]))
            add_shell_word(&text, s->line->words[i]);
    if (dir)
        add_shell_word(&text, dir);
    if (left > 1)
        co_say("stopped %s job %d; jobs %d to %d were not started", where, last, last + 1, count - 1);
    else
        co_say("stopped %s job %d%s", where, last,
               left ? "; the job after it, the last one, was not started" : ", the last one");
    co_say("continue the sweep with: %s ckpt_path=auto", co_str_text(&text));
    co_str_fini(&text);
    co_free(dir);
}

static void say_job(const sweep *s, int job)
{
    co_str label = {0};

    add_label(&label, s, job);
    co_say("job %d of %d: %s", job, co_conf_jobs_count(s->jobs), co_str_text(&label));
    co_str_fini(&label);
}

/* Runs one job to its end. *stopped: a signal asked the sweep to stop, or the job was stopped otherwise. */
static co_err run_job(sweep *s, int job, const signals *sig, outcome *o, bool *stopped)
{
    pid_t pid = -1;

    o->dir = co_sprintf("%s/%d", s->root, job);
    o->summary_path = o->dir ? co_sprintf("%s/summary.json", o->dir) : NULL;
    if (!o->summary_path)
        return CO_ENOMEM;
    if (stat(o->summary_path, &o->before) != 0)
        o->before = (struct stat){0};
    say_job(s, job);
    CO_TRY(start_job(&pid, s, job, o->dir, &sig->mask));
    o->status = wait_job(pid, &sig->set, stopped);
    *stopped |= o->status == CO_EXIT_STOPPED;
    o->stopped = *stopped && o->status != CO_EXIT_DONE;
    return keep_row(s, job, o);
}

static co_err run_jobs(sweep *s, int *worst)
{
    signals sig;
    bool stopped = false;
    int count = co_conf_jobs_count(s->jobs);

    hold_signals(&sig);
    for (int k = 0; k < count && !stopped; k++) {
        outcome o = {0};
        co_err err = run_job(s, k, &sig, &o, &stopped);
        co_free(o.dir);
        co_free(o.summary_path);
        if (err)
            return err;
        if (o.status != CO_EXIT_DONE)
            *worst = CO_EXIT_FAILED;
        stopped &= o.stopped || k + 1 < count; /* a last job that is done leaves nothing to continue */
        if (stopped)
            say_rest(s, k, !o.stopped);
    }
    *worst = stopped ? CO_EXIT_STOPPED : *worst;
    return CO_OK;
}

/* The terminal's width; 80 where there is none. */
static int table_width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    long long n;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return columns && co_str_to_i64(columns, &n) && n >= 40 && n < 10000 ? (int)n : 80;
}

/* Prints as many metrics as fit. Those of evaluations come first, because they are used to compare jobs. */
static void show_metrics(json_t *metrics, int room)
{
    static const char *const first[] = {"test/acc", "test/rmse", "test/mae", "val/acc", "val/rmse",
                                        "val/mae",  "test/",     "val/",     ""};
    const char *key;
    json_t *value;

    for (size_t f = 0; f < CO_COUNT(first); f++)
        json_object_foreach(metrics, key, value)
        {
            size_t head = 0;
            while (head < f && strncmp(key, first[head], strlen(first[head])) != 0)
                head++;
            if (!json_is_number(value) || head != f || strncmp(key, first[f], strlen(first[f])) != 0)
                continue;
            char text[128];
            int n = snprintf(text, sizeof text, "  %s %.4g", key, json_number_value(value));
            if (n > room)
                return;
            room -= n;
            fputs(text, stdout);
        }
}

/* job  words  status  weights  metrics, in columns that fit the terminal; multirun.json has everything. */
static void show_table(const sweep *s)
{
    enum { OTHERS = 4 + 2 + 2 + 7 + 2 + 12, METRICS = 16, LEAST = 12 };
    size_t i;
    json_t *row;
    int width = 5, columns = table_width(), most = columns - OTHERS - METRICS;

    json_array_foreach(s->rows, i, row)
    {
        int n = (int)strlen(co_json_str(row, "words"));
        width = n > width ? n : width;
    }
    most = most < LEAST ? LEAST : most;
    width = width > most ? most : width;
    printf("%4s  %-*s  %-7s  %-12s  metrics\n", "job", width, "words", "status", "weights");
    json_array_foreach(s->rows, i, row)
    {
        const char *words = co_json_str(row, "words");
        bool cut = (int)strlen(words) > width;
        printf("%4zu  %-*.*s%s  %-7s  %-12.12s", i, cut ? width - 2 : width, cut ? width - 2 : width, words,
               cut ? ".." : "", co_json_str(row, "status"), co_json_str(row, "weights_sha256"));
        show_metrics(json_object_get(row, "metrics"), columns - OTHERS - width);
        printf("\n");
    }
}

/* multirun.yaml, and a multirun.json without rows. */
static co_err begin_record(const sweep *s)
{
    co_str text = {0};
    char *path = co_sprintf("%s/multirun.yaml", s->root);

    co_conf_list_words(s->line->words, s->line->n, &text);
    co_err err = path ? co_str_err(&text) : CO_ENOMEM;
    if (!err)
        err = co_fs_write_atomic(path, co_str_text(&text), text.len);
    co_str_fini(&text);
    co_free(path);
    return err ? err : write_rows(s);
}

/* The values to sweep over are wrong: without them there are no jobs to check. */
static co_err refuse(sweep *s, co_err err)
{
    CO_TRY(co_mistake(&s->line->mistakes, err));
    return co_mistakes_tell(&s->line->mistakes);
}

int sweep_run(line *l)
{
    sweep s = {.line = l, .opened = json_object(), .rows = json_array()};
    int worst = CO_EXIT_DONE;
    co_err err = co_conf_sweep(&s.jobs, app_conf_spec(l->config_dir), l->words, l->n);

    err = err ? refuse(&s, err) : sweep_check(&s);
    if (!err && make_root(&s) != CO_OK)
        err = CO_EINPUT; /* nothing was started */
    if (!err)
        err = begin_record(&s);
    if (!err)
        err = run_jobs(&s, &worst);
    if (err) {
        worst = co_say_error(err);
    } else if (l->json) {
        co_json_print(json_incref(s.rows));
    } else {
        show_table(&s);
        printf("%s\n", s.root);
    }
    json_decref(s.opened);
    json_decref(s.rows);
    co_conf_jobs_free(s.jobs);
    co_free(s.root);
    return worst;
}
