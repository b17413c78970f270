/* torch.c -- the scripts of bench/torch/: PyTorch's side of a bench. PyTorch is no part of cohort and never needed by
 * it; a bench that compares with it says how to install it. */
#include "bench/bench_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"

enum { MAX_ANSWER = 65536, MAX_ARGS = 40 };

co_err torch_find(torch_side *torch, const char *bench, const char *file, const char *script_given)
{
    char dir[2048];
    ssize_t n = readlink(self(), dir, sizeof dir - 1);
    const char *from_env = getenv("COHORT_PYTHON");

    torch->bench = bench;
    if (!torch->python)
        torch->python = from_env && *from_env ? from_env : "python3";
    if (script_given) {
        snprintf(torch->script, sizeof torch->script, "%s", script_given);
        return co_fs_exists(torch->script)
                   ? CO_OK
                   : co_fail(CO_EINPUT, "--script %s: there is no such file", torch->script);
    }
    snprintf(torch->script, sizeof torch->script, "bench/torch/%s", file);
    dir[n < 0 ? 0 : n] = '\0';
    while (!co_fs_exists(torch->script)) {
        char *slash = strrchr(dir, '/');
        if (!slash)
            return co_fail(
                CO_EINPUT,
                "bench %s needs bench/torch/%s of the source tree: run it there, or give --script FILE",
                bench, file);
        *slash = '\0';
        snprintf(torch->script, sizeof torch->script, "%s/bench/torch/%s", dir, file);
    }
    return CO_OK;
}

co_err torch_missing(const torch_side *torch, const char *what)
{
    return co_fail(CO_EINPUT,
                   "bench %s needs a Python with %s, %s has none; make one with: python3 -m venv torchenv && "
                   "torchenv/bin/pip install torch torchvision --index-url "
                   "https://download.pytorch.org/whl/cpu && torchenv/bin/pip install timm tokenizers, then "
                   "give --python torchenv/bin/python or set "
                   "COHORT_PYTHON",
                   torch->bench, what, torch->python);
}

/* In the child. `out` becomes its standard output, `err` its standard error; -1: as they are. */
static _Noreturn void become(const torch_side *torch, const char *const *more, int out, int err)
{
    char *argv[MAX_ARGS];
    int n = 0;

    argv[n++] = (char *)(uintptr_t)torch->python;
    argv[n++] = (char *)(uintptr_t)torch->script;
    for (int i = 0; more[i] && n < MAX_ARGS - 1; i++)
        argv[n++] = (char *)(uintptr_t)more[i];
    argv[n] = NULL;
    if (err >= 0)
        dup2(err, STDERR_FILENO);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execvp(torch->python, argv);
    _exit(127);
}

pid_t torch_start(const torch_side *torch, const char *const *more, const char *log)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    become(torch, more, fd, fd);
}

co_err torch_run(const torch_side *torch, const char *const *more, bool quiet, json_t **out)
{
    char answer[MAX_ANSWER];
    int ends[2], status = 0;
    size_t len = 0;
    ssize_t got;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return co_fail(CO_EIO, "pipe: %m");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(torch, more, ends[1], quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1);
    close(ends[1]);
    while (pid > 0 && len < sizeof answer && (got = read(ends[0], answer + len, sizeof answer - len)) != 0)
        if (got > 0)
            len += (size_t)got;
        else if (errno != EINTR)
            break;
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0)
        return co_fail(CO_EIO, "fork: %m");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return co_fail(CO_EFAIL, "%s %s ended with status %d", torch->python, torch->script,
                       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return co_json_parse(out, answer, len, torch->script);
}
