/* mpi_library.c -- which MPI library belongs to the launcher that started this program, and whether it
 * loads. */
#include "link/mpi_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Open MPI first: in a step of srun its processes may have srun's variables too. */
static const mpi_calls *const rows[] = {&mpi_ompi, &mpi_mpich};

const mpi_calls *mpi_launcher(void)
{
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        if (rows[i]->launched())
            return rows[i];
    return NULL;
}

co_err mpi_load(const mpi_calls *calls, const char **file)
{
    char all[600] = "", why[160];
    size_t at = 0;

    for (int i = 0; calls->files[i]; i++) {
        if (calls->load(calls->files[i], why, sizeof why)) {
            if (file)
                *file = calls->files[i];
            return CO_OK;
        }
        if (at < sizeof all)
            at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", i ? "; " : "", why);
    }
    return co_fail(CO_EINPUT, "no library of %s loads (%s). Its directory can be added to LD_LIBRARY_PATH",
                   calls->name, all);
}

bool mpi_loads(const mpi_calls *calls, char *file, size_t size, char *why, size_t why_size)
{
    char text[1024] = "";
    int ends[2], status;
    size_t have = 0;
    ssize_t n;

    snprintf(why, why_size, "this host has no room for a process");
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        const char *found = NULL, *say;
        bool ok = mpi_load(calls, &found) == CO_OK;
        say = ok ? found : co_errmsg();
        _exit(write(ends[1], say, strlen(say)) < 0 || !ok);
    }
    close(ends[1]);
    while (child > 0 && have < sizeof text - 1 &&
           ((n = read(ends[0], text + have, sizeof text - 1 - have)) > 0 || (n < 0 && errno == EINTR)))
        have += n > 0 ? (size_t)n : 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (child < 0)
        return false;
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0 && have > 0;
    snprintf(ok ? file : why, ok ? size : why_size, "%s", have ? text : "its library ends the program");
    return ok;
}
