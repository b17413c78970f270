/* plan.c -- checks the flags' values, so every mistake is reported before anything is started. */
#include "job/launch/launch_int.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "proc/crew.h"

static const char default_signals[] = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";

/* --- what goes where ------------------------------------------------------------------------------------ */
/* "3", or "0:3,1:1". */
static co_err set_streams(uint8_t *out, int n, const char *name, const char *text)
{
    const char *at = text;

    if (text && strlen(text) == 1 && *text >= '0' && *text <= '3') {
        memset(out, *text - '0', (size_t)n);
        return CO_OK;
    }
    while (at && *at) {
        char *end;
        long rank = strtol(at, &end, 10);
        bool fits =
            end > at && *end == ':' && end[1] >= '0' && end[1] <= '3' && (end[2] == ',' || end[2] == '\0');
        if (!fits || rank < 0)
            return co_fail(CO_EINPUT, "launch: %s=%s: 0, 1, 2 or 3, or RANK:N,RANK:N is needed", name, text);
        if (rank >= n)
            return co_fail(CO_EINPUT, "launch: %s=%s: there is no local rank %ld, there are %d workers", name,
                           text, rank, n);
        out[rank] = (uint8_t)(end[1] - '0');
        at = end + 2 + (end[2] == ',');
    }
    return CO_OK;
}

static co_err set_filter(launch_plan *p, const char *text)
{
    for (const char *at = text; at && *at;) {
        char *end;
        long rank = strtol(at, &end, 10);
        if (end == at || rank < 0 || (*end && *end != ','))
            return co_fail(CO_EINPUT,
                           "launch: --local-ranks-filter=%s: numbers with commas between them are needed",
                           text);
        if (rank < CO_MAX_WORKERS)
            p->shown[rank] = true;
        at = end + (*end == ',');
    }
    p->spec.shown = text ? p->shown : NULL;
    return CO_OK;
}

static int signal_of(const char *name, size_t len)
{
    if (len > 3 && strncmp(name, "SIG", 3) == 0) {
        name += 3;
        len -= 3;
    }
    for (int s = 1; s < NSIG; s++) {
        const char *known = sigabbrev_np(s);
        if (known && strlen(known) == len && strncmp(known, name, len) == 0)
            return s;
    }
    return 0;
}

/* SIGUSR1, a scheduler's warning, is always among them; SIGHUP is not when nohup wants it ignored. */
static co_err set_signals(launch_plan *p, const char *text)
{
    sigset_t *set = &p->spec.signals;
    struct sigaction hup;

    p->spec.signal_names = text = text ? text : default_signals;
    sigemptyset(set);
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ",");
        int sig = signal_of(at, n);
        if (!sig || sig == SIGKILL || sig == SIGSTOP)
            return co_fail(CO_EINPUT,
                           "launch: --signals-to-handle=%s: %.*s is not a signal that can be handled", text,
                           (int)n, at);
        sigaddset(set, sig);
        at += n + (at[n] == ',');
    }
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGUSR1);
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_IGN)
        sigdelset(set, SIGHUP);
    return CO_OK;
}

/* --- all ------------------------------------------------------------------------------------------------ */
static co_err refuse_unsupported(const launch_args *a)
{
    if (a->logs_specs)
        return co_fail(
            CO_EINPUT,
            "launch: --logs-specs=%s names a plugin of Python; --log-dir, --redirects and --tee say "
            "what goes where",
            a->logs_specs);
    if (a->numa)
        return co_fail(
            CO_EINPUT,
            "launch: --numa-binding is not in this version; numactl inside the script binds a worker");
    if (a->dup_out || a->dup_err)
        return co_fail(CO_EINPUT,
                       "launch: --duplicate-std*-filters are not in this version; --log-dir=FOLDER writes "
                       "merged.log, which grep searches");
    return CO_OK;
}

static co_err set_times(launch_plan *p, const launch_args *a)
{
    const char *grace = a->grace              ? a->grace
                        : a->shutdown_timeout ? a->shutdown_timeout
                                              : getenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
    double unused;

    p->spec.grace_s = 30;
    if (grace && *grace)
        CO_TRY(flag_seconds(&p->spec.grace_s, "--grace", grace));
    if (a->stall)
        CO_TRY(flag_seconds(&p->spec.stall_s, "--stall-after", a->stall));
    return a->monitor ? flag_seconds(&unused, "--monitor-interval", a->monitor) : CO_OK;
}

co_err plan_make(launch_plan *p, const launch_args *a)
{
    co_job_spec *s = &p->spec;
    co_terms *t = &s->terms;
    const char *template = a->tee_template ? a->tee_template : getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");

    CO_TRY(refuse_unsupported(a));
    CO_TRY(plan_hosts(p, a));
    if (p->place && p->place->outside)
        return plan_into_step(p);
    CO_TRY(set_times(p, a));
    CO_TRY(set_signals(p, a->signals));
    if (a->train)
        return plan_own_training(p, a);
    if (a->max_restarts)
        CO_TRY(flag_whole(&t->max_restarts, "--max-restarts", a->max_restarts, 0, 1000000));
    if (a->start_method)
        CO_TRY(flag_one_of("--start-method", a->start_method, "spawn|fork|forkserver"));
    if (a->prefix)
        CO_TRY(flag_one_of("--log-prefix", a->prefix, "auto|none|rank"));
    CO_TRY(set_streams(p->redirects, t->nproc, "--redirects", a->redirects));
    CO_TRY(set_streams(p->tee, t->nproc, "--tee", a->tee));
    CO_TRY(set_filter(p, a->filter));
    CO_TRY(plan_program(p, a));
    s->redirects = p->redirects;
    s->tee = p->tee;
    s->prefix = !a->prefix || *a->prefix == 'a' ? CO_PREFIX_AUTO
                : *a->prefix == 'n'             ? CO_PREFIX_NONE
                                                : CO_PREFIX_RANK;
    s->tee_template = template && *template ? template : NULL;
    s->role = a->role;
    s->log_dir = a->log_dir;
    s->virtual_local_rank = a->virtual_rank;
    s->omp_one = t->nproc > 1 && !getenv("OMP_NUM_THREADS");
    s->out_fd = STDOUT_FILENO;
    s->err_fd = STDERR_FILENO;
    return CO_OK;
}

void plan_free(launch_plan *p)
{
    if (p->place)
        co_place_close(p->place);
    co_pool_fini(&p->pool);
    explicit_bzero(p->meet.token, sizeof p->meet.token);
}
