/* trial.c -- runs `cohort train` for the benches: in a process of its own, with a fresh run folder, and reads
 * its summary. */
#include "bench/bench_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "config/config.h"

enum { MAX_WORDS = 64 };

co_err trial_folder(char path[64])
{
    const char *tmp = getenv("TMPDIR");

    snprintf(path, 64, "%.40s/cohort-bench-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(path) ? CO_OK : co_fail(CO_EIO, "make a folder below %s: %m", tmp ? tmp : "/tmp");
}

static void child(const char *program, const char *log, char **argv)
{
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);

    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
    }
    execv(program, argv);
    _exit(127);
}

static double number_of(const json_t *j, const char *key)
{
    double x = 0;

    co_json_f64(j, key, &x);
    return x;
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

co_err trial_run(trial *t, const char *program, const char *dir, const char *const *words)
{
    char *argv[MAX_WORDS + 4], path[4096], log[4096];
    struct rusage used = {0};
    int n = 0, st;

    *t = (trial){.dir = co_sprintf("%s/run", dir)};
    char *run_dir = t->dir ? co_conf_word("run.dir", t->dir) : NULL;
    if (!run_dir)
        return CO_ENOMEM;
    argv[n++] = (char *)(uintptr_t)program;
    argv[n++] = (char *)(uintptr_t) "train";
    for (int i = 0; words[i] && i < MAX_WORDS; i++)
        argv[n++] = (char *)(uintptr_t)words[i];
    argv[n++] = run_dir;
    argv[n] = NULL;
    snprintf(log, sizeof log, "%s/log", dir);
    fflush(NULL);
    t->began_ns = co_now_ns();
    pid_t pid = fork();
    if (pid == 0)
        child(program, log, argv);
    while (pid > 0 && wait4(pid, &st, 0, &used) < 0 && errno == EINTR)
        ;
    t->secs = (double)(co_now_ns() - t->began_ns) * 1e-9;
    t->cpu_s = seconds(&used.ru_utime) + seconds(&used.ru_stime); /* of it and of all that it waited for */
    co_free(run_dir);
    if (pid < 0)
        return co_fail(CO_EIO, "fork: %m");
    t->status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
    snprintf(path, sizeof path, "%s/summary.json", t->dir);
    co_err err = co_json_read(&t->summary, path, 1 << 20);
    const json_t *host = json_array_get(json_object_get(t->summary, "hosts"), 0);
    t->beside_s = t->cpu_s - (number_of(host, "cpu_user_s") + number_of(host, "cpu_sys_s") -
                              number_of(host, "supervisor_cpu_s"));
    return err ? co_fail_in(err, "exit status %d, see %s", t->status, log) : CO_OK;
}

void trial_free(trial *t)
{
    json_decref(t->summary);
    co_free(t->dir);
    memset(t, 0, sizeof *t);
}

co_err trial_once(trial *t, const char *root, const char *const *words)
{
    char dir[80];

    snprintf(dir, sizeof dir, "%s/r", root);
    CO_TRY(co_fs_remove_tree(dir));
    CO_TRY(co_fs_mkdirs(dir));
    CO_TRY(trial_run(t, self(), dir, words));
    return t->status == 0 ? CO_OK : co_fail(CO_EFAIL, "a run ended with exit status %d", t->status);
}

double trial_number(const trial *t, const char *key)
{
    return number_of(t->summary, key);
}

int trial_ended(co_err err, const char *root)
{
    if (err) {
        co_notice("%s (logs in %s)", co_errmsg(), root);
        return CO_EXIT_FAILED;
    }
    co_fs_remove_tree(root);
    return CO_EXIT_DONE;
}
