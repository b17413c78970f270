/* program.c -- decides what is executed: Python with a script or a module, or the program itself.
 *
 *     -m package.train            python -u -m package.train
 *     train.py, or no executable  python -u train.py
 *     --no-python, an executable  itself
 *
 * python is PYTHON_EXEC, or python3 or python as found in PATH.
 */
#include "job/launch/launch_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

bool program_is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool ends(const char *word, const char *tail)
{
    size_t n = strlen(word), m = strlen(tail);

    return n >= m && strcmp(word + n - m, tail) == 0;
}

/* Finds a name without '/' in PATH. */
char *program_in_path(co_pool *pool, const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return program_is_file(name) && access(name, X_OK) == 0 ? co_pool_str(pool, name) : NULL;
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; *name && *at;) {
        size_t n = strcspn(at, ":");
        char *file = n ? co_pool_printf(pool, "%.*s/%s", (int)n, at, name) : co_pool_str(pool, name);
        if (file && program_is_file(file) && access(file, X_OK) == 0)
            return file;
        at += n + (at[n] == ':');
    }
    return NULL;
}

/* Is "package.train" a file or a folder below this folder? */
static bool is_module(const char *word)
{
    char path[1024];
    int n = snprintf(path, sizeof path - 4, "%s", word);

    for (char *p = path; *p; p++)
        *p = *p == '.' ? '/' : *p;
    if (n < 0 || (size_t)n >= sizeof path - 4)
        return false;
    if (co_fs_is_dir(path))
        return true;
    strcat(path, ".py");
    return program_is_file(path);
}

bool launch_looks_like_program(const launch_args *a, const char *word)
{
    co_pool pool = {0};
    bool is = a->module ? is_module(word) : program_is_file(word) || ends(word, ".py") || ends(word, ".sh");

    if (!is && a->no_python)
        is = program_in_path(&pool, word) != NULL;
    co_pool_fini(&pool);
    return is;
}

/* Does the first line name Python? */
static bool is_python_script(const char *path)
{
    char head[128] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof head - 1) : -1;

    if (fd >= 0)
        close(fd);
    head[n > 0 ? n : 0] = '\0';
    head[strcspn(head, "\n")] = '\0';
    return strncmp(head, "#!", 2) == 0 && strstr(head, "python");
}

static co_err no_such(const char *word, const launch_args *a)
{
    char cwd[1024] = "";

    if (!getcwd(cwd, sizeof cwd))
        cwd[0] = '\0';
    if (co_fs_is_dir(word))
        return co_fail(CO_EINPUT, "launch: %s is a folder; a program is needed", word);
    if (program_is_file(word))
        return co_fail(CO_EINPUT, "launch: %s may not be executed: chmod +x %s%s", word, word,
                       a->no_python ? ", or leave --no-python out if it is a Python script" : "");
    return co_fail(CO_EINPUT, "launch: no program %s in %s%s", word, cwd,
                   strchr(word, '/') ? "" : " or in PATH");
}

/* Adds the interpreter and its options; argv has room. */
static co_err use_python(launch_plan *p, const launch_args *a, const char **argv, int *n)
{
    const char *given = getenv("PYTHON_EXEC");
    const char *python = given && *given ? given : NULL;
    char *file = python ? program_in_path(&p->pool, python) : program_in_path(&p->pool, "python3");

    if (!file && !python)
        file = program_in_path(&p->pool, "python");
    if (!file && python)
        return co_fail(CO_EINPUT, "launch: PYTHON_EXEC=%s is not executable", python);
    if (!file)
        return co_fail(
            CO_EINPUT,
            "launch: neither python3 nor python is in PATH; PYTHON_EXEC=/path/to/python names one");
    p->spec.file = file;
    argv[(*n)++] = python ? python : file;
    argv[(*n)++] = "-u";
    if (a->module)
        argv[(*n)++] = "-m";
    return CO_OK;
}

co_err plan_program(launch_plan *p, const launch_args *a)
{
    const char *word = a->program[0];
    const char **argv = co_pool_alloc(&p->pool, (size_t)(a->n + 4) * sizeof *argv);
    int n = 0;

    if (!argv)
        return CO_ENOMEM;
    if (a->no_python && a->module)
        return co_fail(CO_EINPUT, "launch: --no-python and --module do not go together");
    if (a->run_path && word[0] != '/')
        return co_fail(CO_EINPUT, "launch: --run-path takes a script from / on, not %s", word);
    const char *given = getenv("PYTHON_EXEC");
    bool python = a->module || a->run_path || ends(word, ".py");
    if (!python && !a->no_python && program_is_file(word)) {
        python = access(word, X_OK) != 0 || (given && *given && is_python_script(word));
        if (!python && is_python_script(word))
            setenv("PYTHONUNBUFFERED", "1", 0); /* has the effect of -u */
    }
    if (a->no_python && !a->run_path)
        python = false;
    if (python) {
        if (!a->module && !program_is_file(word))
            return no_such(word, a);
        CO_TRY(use_python(p, a, argv, &n));
    } else {
        /* a file in this folder wins over one in PATH, as for a Python script */
        p->spec.file = program_is_file(word)
                           ? co_pool_printf(&p->pool, "%s%s", strchr(word, '/') ? "" : "./", word)
                           : program_in_path(&p->pool, word);
        if (!p->spec.file || access(p->spec.file, X_OK) != 0)
            return no_such(word, a);
    }
    argv[n++] = word;
    plan_local_rank(p, a, n);
    for (int i = 1; i < a->n; i++)
        argv[n++] = a->program[i];
    p->spec.argv = argv;
    const char *slash = strrchr(word, '/');
    snprintf(p->spec.terms.program, sizeof p->spec.terms.program, "%s", slash && slash[1] ? slash + 1 : word);
    return CO_OK;
}
