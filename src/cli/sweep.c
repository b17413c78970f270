/* sweep.c -- `cohort train -m`: runs the jobs of a sweep one after the other, each as a separate `cohort
 * train` in logs/TASK/multiruns/DATE/NUMBER.
 *
 * All jobs are composed before the first one starts, so a bad word leaves nothing behind. A signal to stop
 * is passed on to the running job, and the sweep ends with it. A failed job does not stop the others. With
 * run.dir=FOLDER the jobs are in FOLDER/NUMBER, and the same line with ckpt_path=auto continues the sweep. */
#include "cli/train_int.h"

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
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/program.h"

typedef struct sweep {
    line *line;
    co_conf_jobs *jobs;
    char *root;
    bool given;   /* root is run.dir */
    bool planned; /* a job with a mistake was checked by a plan */
    json_t *rows; /* an object per job that ran */
} sweep;

/* The words in which a job differs from the others: "optim.lr=0.1 seed=2". */
static void add_label(co_str *out, const sweep *s, int job)
{
    size_t before = out->len;

    for (int i = 0; i < s->line->n; i++)
        if (co_conf_jobs_swept(s->jobs, i))
            co_str_addf(out, "%s%s", out->len > before ? " " : "", co_conf_jobs_words(s->jobs, job)[i]);
}

/* The folder: run.dir, or a name made of the task and the time. */
static co_err name_root(sweep *s, const co_train_cfg *cfg)
{
    char date[32];
    time_t now = time(NULL);
    struct tm tm;

    strftime(date, sizeof date, "%Y-%m-%d_%H-%M-%S", localtime_r(&now, &tm));
    s->given = cfg->run_dir != NULL;
    s->root = cfg->run_dir ? co_strdup(cfg->run_dir) : co_sprintf("logs/%s/multiruns/%s", cfg->task_name, date);
    return s->root ? CO_OK : CO_ENOMEM;
}

/* Composes a job. With the first mistake, those that only a plan finds are added, once for all jobs. */
static co_err check_job(sweep *s, int job)
{
    line words = {.command = s->line->command, .config_dir = s->line->config_dir, .n = s->line->n};
    app one;

    words.words = (const char **)(uintptr_t)co_conf_jobs_words(s->jobs, job);
    words.mistakes = s->line->mistakes; /* of all jobs */
    co_err err = app_open(&one, &words);
    bool first = words.mistakes.n && !s->planned;
    s->planned |= first;
    if (!err && first)
        err = co_plan_check(&one.spec, app_sure(&one), &words.mistakes);
    if (!err && job == 0)
        err = name_root(s, one.cfg);
    s->line->mistakes = words.mistakes;
    app_close(&one);
    return err;
}

/* Checks every job before the first one starts. */
static co_err check_jobs(sweep *s)
{
    for (int k = 0; k < co_conf_jobs_count(s->jobs); k++)
        CO_TRY(check_job(s, k));
    return co_mistakes_tell(&s->line->mistakes);
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

/* What the job left in its summary.json, and how it ended. */
static co_err keep_row(sweep *s, int job, const char *dir, int status)
{
    co_str label = {0};
    char *path = co_sprintf("%s/summary.json", dir);
    json_t *summary = NULL;

    add_label(&label, s, job);
    if (!path || co_str_err(&label)) {
        co_free(path);
        co_str_fini(&label);
        return CO_ENOMEM;
    }
    if (!co_fs_exists(path) || co_json_read(&summary, path, 1 << 20) != CO_OK)
        co_errclear();
    const char *how = summary ? co_json_str(summary, "status") : NULL, *sha = NULL;
    sha = summary ? co_json_str(summary, "weights_sha256") : NULL;
    json_t *metrics = summary ? json_object_get(summary, "metrics") : NULL;
    json_t *row = json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:o}", "job", job, "words", co_str_text(&label),
                            "status", how ? how : "failed", "exit_status", status, "dir", dir, "weights_sha256",
                            sha ? sha : "", "metrics", metrics ? json_incref(metrics) : json_object());
    json_decref(summary);
    co_free(path);
    co_str_fini(&label);
    return row && json_array_append_new(s->rows, row) == 0 ? CO_OK : co_fail(CO_ENOMEM, "out of memory");
}

/* Says which jobs a stopped sweep left out, and the line that continues it. */
static void say_rest(const sweep *s, int last)
{
    int count = co_conf_jobs_count(s->jobs), left = count - last - 1;
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
        co_say("stopped in job %d; jobs %d to %d were not started", last, last + 1, count - 1);
    else
        co_say("stopped in job %d%s", last,
               left ? "; the job after it, the last one, was not started" : ", the last one");
    co_say("continue the sweep with: %s ckpt_path=auto", co_str_text(&text));
    co_str_fini(&text);
    co_free(dir);
}

static co_err run_jobs(sweep *s, int *worst)
{
    sigset_t set, mask;
    bool stopped = false;
    int count = co_conf_jobs_count(s->jobs);

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &mask);
    for (int k = 0; k < count && !stopped; k++) {
        co_str label = {0};
        char *dir = co_sprintf("%s/%d", s->root, k);
        pid_t pid = -1;
        add_label(&label, s, k);
        co_say("job %d of %d: %s", k, count, co_str_text(&label));
        co_str_fini(&label);
        co_err err = dir ? start_job(&pid, s, k, dir, &mask) : CO_ENOMEM;
        int status = err ? CO_EXIT_FAILED : wait_job(pid, &set, &stopped);
        stopped |= status == CO_EXIT_STOPPED;
        if (status != CO_EXIT_DONE && *worst != CO_EXIT_STOPPED)
            *worst = status == CO_EXIT_STOPPED ? CO_EXIT_STOPPED : CO_EXIT_FAILED;
        if (!err)
            err = keep_row(s, k, dir, status);
        co_free(dir);
        if (err)
            return err;
        if (stopped)
            say_rest(s, k);
    }
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
    static const char *const first[] = {"test/acc", "test/mae", "val/acc", "val/mae", "test/", "val/", ""};
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

static co_err write_record(const sweep *s)
{
    co_str text = {0};
    char *words = co_sprintf("%s/multirun.yaml", s->root), *rows = co_sprintf("%s/multirun.json", s->root);

    co_conf_list_words(s->line->words, s->line->n, &text);
    co_err err = words && rows ? co_str_err(&text) : CO_ENOMEM;
    if (!err)
        err = co_fs_write_atomic(words, co_str_text(&text), text.len);
    if (!err)
        err = co_json_write(s->rows, rows);
    co_str_fini(&text);
    co_free(words);
    co_free(rows);
    return err;
}

/* The values to sweep over are wrong: without them there are no jobs to check. */
static co_err refuse(sweep *s, co_err err)
{
    CO_TRY(co_mistake(&s->line->mistakes, err));
    return co_mistakes_tell(&s->line->mistakes);
}

int sweep_run(line *l)
{
    sweep s = {.line = l, .rows = json_array()};
    int worst = CO_EXIT_DONE;
    co_err err = co_conf_sweep(&s.jobs, app_conf_spec(l->config_dir), l->words, l->n);

    err = err ? refuse(&s, err) : check_jobs(&s);
    if (!err && make_root(&s) != CO_OK)
        err = CO_EINPUT; /* nothing was started */
    if (!err)
        err = write_record(&s);
    if (!err)
        err = run_jobs(&s, &worst);
    if (!err)
        err = write_record(&s);
    if (err) {
        worst = co_say_error(err);
    } else if (l->json) {
        co_json_print(json_incref(s.rows));
    } else {
        show_table(&s);
        printf("%s\n", s.root);
    }
    json_decref(s.rows);
    co_conf_jobs_free(s.jobs);
    co_free(s.root);
    return worst;
}
