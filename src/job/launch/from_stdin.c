/* from_stdin.c -- `cohort launch --from-stdin`: the other end of --hosts, started by ssh on each host and
 * typed by nobody. Its order comes on standard input, followed by the conductor's control lines. Workers have
 * no standard input.
 */
#include "job/launch/launch_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "ssh/ssh.h"
#include "net/net.h"

extern char **environ;

static void note(const char *text)
{
    co_notice("%s", text);
}

/* Sets the job's variables. Defaults for flags (PET_...) that this host's shell may have set are ignored. */
static void set_environment(const co_ssh_order *o)
{
    for (int i = 0; environ && environ[i];) {
        char *name = co_sprintf("%.*s", (int)strcspn(environ[i], "="), environ[i]);
        if (strncmp(environ[i], "PET_", 4) != 0 || !name || unsetenv(name) != 0)
            i++;
        co_free(name);
    }
    for (int i = 0; o->env[i]; i++) {
        size_t n = strcspn(o->env[i], "=");
        char *name = co_sprintf("%.*s", (int)n, o->env[i]);
        if (name && o->env[i][n])
            setenv(name, o->env[i] + n + 1, 1);
        co_free(name);
    }
}

static void go_there(const char *dir)
{
    char here[4096] = "?";

    if (chdir(dir) == 0)
        return;
    if (!getcwd(here, sizeof here))
        snprintf(here, sizeof here, "?");
    co_notice("there is no folder %s here: workers start in %s", dir, here);
}

/* A job must not wait for its reader. Sockets cannot be opened a second time for that, so they are made
 * non-blocking here. */
static void block_output(bool block)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        fcntl(fd, F_SETFL, block ? 0 : O_NONBLOCK);
}

/* Moves the control connection to another descriptor; standard input becomes /dev/null. */
static co_err move_input(int *control)
{
    int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);

    *control = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (nowhere < 0 || *control < 0 || dup2(nowhere, STDIN_FILENO) < 0)
        return co_fail(CO_EIO, "standard input: %m");
    fcntl(*control, F_SETFL, O_NONBLOCK);
    close(nowhere);
    return CO_OK;
}

static co_err set_plan(launch_plan *p, const co_ssh_order *o)
{
    char addresses[512];

    p->spec.host = o->host;
    p->spec.hushed = o->rank > 0;
    CO_TRY(move_input(&p->spec.control_fd));
    if (o->hosts == 1)
        return CO_OK;
    snprintf(p->meet.host, sizeof p->meet.host, "%s", o->host);
    snprintf(p->meet.token, sizeof p->meet.token, "%s", o->token);
    snprintf(p->meet.also, sizeof p->meet.also, "%s", o->also);
    p->meet.role = o->rank ? CO_MEET_JOIN : CO_MEET_SERVE;
    if (o->rank)
        return CO_OK;
    co_endpoint at;
    CO_TRY(co_meet_listen(&p->meet));
    CO_TRY(co_endpoint_parse(&at, p->meet.endpoint));
    co_addr_mine(addresses, sizeof addresses);
    return co_ssh_say_where(STDOUT_FILENO, at.port, addresses);
}

/* The training's own output waits for its reader, as everywhere; what the conductor says becomes signals. */
static int run_training(launch_plan *p, const co_launch_calls *calls)
{
    conductor *c = NULL;
    co_err err = conductor_start(&c, p->spec.control_fd);

    block_output(true);
    co_program_set("cohort"); /* lines to type name what the user typed, not this host's copy of it */
    int status = err ? co_say_error(err) : launch_run(p, calls);
    conductor_stop(c);
    return status;
}

static int run(const co_ssh_order *o, launch_plan *p, const co_launch_calls *calls)
{
    launch_args a;
    char **argv;
    int n = 0, status;

    while (o->words[n])
        n++;
    argv = co_array((size_t)n + 2, sizeof *argv);
    if (!argv)
        return co_say_error(CO_ENOMEM);
    argv[0] = "launch";
    memcpy(argv + 1, o->words, (size_t)n * sizeof *argv);
    co_err err = launch_parse(&a, n + 1, argv, note);
    if (!err) {
        err = own_training(&a);
        if (!err)
            err = plan_make(p, &a);
        if (!err)
            err = set_plan(p, o);
        status = err ? co_say_error(err) : a.train ? run_training(p, calls) : launch_run(p, calls);
        launch_args_free(&a);
    } else {
        status = co_say_error(err);
    }
    co_free(argv);
    return status;
}

int launch_from_stdin(const co_launch_calls *calls)
{
    co_ssh_order o;
    launch_plan *p = co_zalloc(sizeof *p);
    int status = CO_EXIT_FAILED;
    co_err err = co_ssh_say_start(STDOUT_FILENO);

    if (!err)
        err = p ? co_ssh_order_take(&o, STDIN_FILENO) : CO_ENOMEM;
    if (err == CO_EPEER) { /* the conductor is gone: nobody to report to */
        co_free(p);
        return CO_EXIT_FAILED;
    }
    if (err) {
        status = co_say_error(err);
    } else {
        co_say_host(o.host);
        set_environment(&o);
        go_there(o.cwd);
        block_output(false);
        status = run(&o, p, calls);
        block_output(true);
        plan_free(p);
        co_say_host(NULL);
        co_ssh_order_fini(&o);
    }
    fflush(stderr);
    co_ssh_say_end(STDOUT_FILENO, status);
    co_free(p);
    return status;
}
