/* hosts.c -- `cohort launch --hosts a,b` and `--hostfile FILE`: this process starts the job on other hosts
 * over ssh (ssh/ssh.h) and runs no workers itself, unless a listed host is this one.
 *
 * The command line is checked here, once. Each host looks for the program and counts GPUs itself.
 */
#include "job/launch/launch_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "ssh/ssh.h"
#include "net/net.h"

enum { HOSTFILE_MOST = 1 << 20 };

static co_err refuse_others(const launch_args *a)
{
    const struct {
        const char *name;
        bool given;
    } flags[] = {{"--standalone", a->standalone},        {"--node-rank", a->node_rank != NULL},
                 {"--master-addr", a->master_addr},      {"--master-port", a->master_port},
                 {"--rdzv-endpoint", a->endpoint},       {"--local-addr", a->local_addr},
                 {"--hostfile", a->hosts && a->hostfile}};

    for (size_t i = 0; i < CO_COUNT(flags); i++)
        if (flags[i].given)
            return co_fail(
                CO_EINPUT,
                "launch: %s does not go with --host%s: the hosts are those of the list, in its order, and "
                "they meet at the first of them. Leave it out",
                flags[i].name, a->hosts ? "s" : "file");
    if (a->backend && strcmp(a->backend, "static") != 0 && strcmp(a->backend, "c10d") != 0)
        return co_fail(
            CO_EINPUT,
            "launch: --rdzv-backend=%s does not go with --hosts, whose hosts meet at the first of them; "
            "with etcd, start the line on each host",
            a->backend);
    return CO_OK;
}

static co_err read_hosts(co_ssh_host **out, int *n, const launch_args *a)
{
    char *bytes;
    size_t len;

    if (a->hosts)
        return co_ssh_list(out, n, a->hosts);
    co_err err = co_fs_read(&bytes, &len, a->hostfile, HOSTFILE_MOST);
    if (err)
        return co_fail_in(CO_EINPUT, "launch: --hostfile");
    err = co_ssh_hostfile(out, n, bytes, len, a->hostfile);
    co_free(bytes);
    return err;
}

/* Checks the command line as if it were for this host, so mistakes are reported before anything is started
 * anywhere. */
static co_err check_line(launch_plan *p, const launch_args *a, const co_ssh_host *hosts, int n)
{
    static const char *self[] = {"/proc/self/exe", NULL};
    launch_args b = *a;
    long long most = 1;

    if (a->nproc && !co_str_to_i64(a->nproc, &most))
        b.nproc = b.redirects = b.tee = NULL; /* these depend on the other host's number of workers */
    for (int i = 0; i < n; i++)
        most = hosts[i].slots > most ? hosts[i].slots : most;
    if (b.nproc || most > 1)
        b.nproc = co_pool_printf(&p->pool, "%lld", most);
    if (!b.nnodes)
        b.nnodes = co_pool_printf(&p->pool, "%d", n);
    b.endpoint = "localhost:0";
    b.program = self;
    b.n = 1;
    b.module = b.run_path = false;
    b.no_python = true;
    CO_TRY(plan_make(p, &b));
    if (n < p->spec.terms.min_hosts || n > p->spec.terms.max_hosts)
        return co_fail(CO_EINPUT, "launch: --nnodes=%s, but the list has %d host%s: leave --nnodes out",
                       a->nnodes, n, n == 1 ? "" : "s");
    return CO_OK;
}

/* --- the job -------------------------------------------------------------------------------------------- */
static bool has_terminal(void)
{
    int tty = isatty(STDERR_FILENO) ? open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY) : -1;

    if (tty >= 0)
        close(tty);
    return tty >= 0;
}

static co_err make_token(char *out, size_t size, const launch_plan *p, const launch_args *a)
{
    char text[CO_TOKEN_TEXT];
    co_token t;

    snprintf(out, size, "%s", a->insecure ? "" : p->meet.token);
    if (a->insecure || *p->meet.token)
        return CO_OK;
    CO_TRY(co_token_make(&t));
    co_token_text(text, &t);
    snprintf(out, size, "%s", text);
    return CO_OK;
}

static co_err conduct(launch_plan *p, launch_args *a, co_ssh_host *hosts, int n, int *status)
{
    static const char *const always[] = {"PYTHON_EXEC", "OMP_NUM_THREADS", NULL};
    const char *flags[64] = {0}, *env[LAUNCH_ENV_MOST + 1] = {0};
    const char *with = a->ssh ? a->ssh : getenv("COHORT_SSH");
    char token[64], cwd[4096];
    const co_terms *t = &p->spec.terms;

    CO_TRY(check_line(p, a, hosts, n));
    CO_TRY(make_token(token, sizeof token, p, a));
    CO_TRY(variables_list(env, &p->pool, a, always));
    if (!getcwd(cwd, sizeof cwd))
        return co_fail(CO_EIO, "the working directory: %m");
    if (n > 1) /* only these hosts can join: no need to wait for more */
        a->nnodes = co_pool_printf(&p->pool, t->min_hosts < n ? "%d:%d" : "%d",
                                   t->min_hosts < n ? t->min_hosts : n, n);
    else
        a->nnodes = NULL;
    if (n > 1 && !a->rdzv_id) /* `cohort logs` tells jobs apart by it */
        CO_TRY(name_job(&p->pool, &a->rdzv_id));
    int k = launch_words(flags, &p->pool, a, job_flags);
    if (a->insecure)
        flags[k] = "--insecure";
    co_ssh_job job = {.hosts = hosts,
                      .n = n,
                      .min_hosts = t->min_hosts,
                      .command = with && *with ? with : NULL,
                      .may_ask = has_terminal(),
                      .version = COHORT_VERSION,
                      .flags = flags,
                      .program = a->program,
                      .env = env,
                      .cwd = cwd,
                      .token = token,
                      .signals = p->spec.signals,
                      .grace_s = p->spec.grace_s,
                      .out_fd = STDOUT_FILENO,
                      .err_fd = STDERR_FILENO};
    co_err err = co_ssh_run(&job, status);
    explicit_bzero(token, sizeof token);
    return err;
}

int launch_on_hosts(launch_args *a)
{
    launch_plan *p = co_zalloc(sizeof *p);
    co_ssh_host *hosts = NULL;
    int n = 0, status = CO_EXIT_FAILED;
    co_err err = p ? refuse_others(a) : CO_ENOMEM;

    if (!err)
        err = read_hosts(&hosts, &n, a);
    if (!err)
        err = conduct(p, a, hosts, n, &status);
    if (p)
        plan_free(p);
    co_free(p);
    co_free(hosts);
    return err ? co_say_error(err) : status;
}
