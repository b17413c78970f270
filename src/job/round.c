/* round.c -- the workers of one round: started together, ended together. */
#include "job/job_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* ${role_name} and the others, in a template for tee. */
static void fill_template(char *out, size_t size, const char *template, const job *j, const worker *w)
{
    char rank[16], local[16];
    const struct {
        const char *name, *value;
    } vars[] = {{"${role_name}", j->spec->role ? j->spec->role : "default"},
                {"${local_rank}", local},
                {"${rank}", rank},
                {"${hostname}", j->host}};
    size_t n = 0;

    snprintf(rank, sizeof rank, "%d", w->rank);
    snprintf(local, sizeof local, "%d", j->spec->local_first + w->local_rank);
    while (*template && n + 1 < size) {
        size_t v = 0;
        while (v < CO_COUNT(vars) && strncmp(template, vars[v].name, strlen(vars[v].name)) != 0)
            v++;
        if (v == CO_COUNT(vars)) {
            out[n++] = *template ++;
            continue;
        }
        n += (size_t)snprintf(out + n, size - n, "%s", vars[v].value);
        n = n < size ? n : size - 1;
        template += strlen(vars[v].name);
    }
    out[n] = '\0';
}

/* Decides where a stream goes: to the screen, to a file, or to both. The rules are torchrun's, but with a
 * log_dir every stream has a file.
 */
static void set_stream(job *j, worker *w, int which)
{
    const co_job_spec *spec = j->spec;
    int bit = which == 0 ? CO_JOB_OUT : CO_JOB_ERR;
    bool teed = spec->tee && spec->tee[w->local_rank] & bit;
    bool redirected = spec->redirects && spec->redirects[w->local_rank] & bit;
    stream *s = &w->s[which];

    *s = (stream){.fd = -1, .which = which, .w = w, .teed = teed, .file.fd = -1};
    s->shown = (teed || !redirected) && (!spec->shown || spec->shown[w->local_rank]);
    if (spec->log_dir || teed || redirected)
        files_log_open(&j->files, &s->file, w->local_rank, which == 0 ? "stdout.log" : "stderr.log");
    if (s->shown && !teed)
        j->round.bars[j->round.n_bars++] = (co_bar_source){.local_rank = w->local_rank, .lines = &s->lines};
}

static char **worker_argv(const job *j, const worker *w, co_pool *pool)
{
    const co_job_spec *s = j->spec;
    int n = 0, k = 0;

    while (s->argv[n])
        n++;
    char **argv = co_pool_alloc(pool, (size_t)(n + 2) * sizeof *argv);
    if (!argv)
        return NULL;
    for (int i = 0; i <= n; i++) {
        if (s->local_rank_at && i == s->local_rank_at)
            argv[k++] = co_pool_printf(pool, "%s=%d", s->local_rank_flag, s->local_first + w->local_rank);
        argv[k++] = (char *)s->argv[i]; /* execve does not write to them */
    }
    return argv;
}

static co_err start_worker(job *j, worker *w)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    co_pool pool = {0};
    co_err e = CO_OK;

    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) {
        e = co_fail(CO_EIO, "pipes for local rank %d: %m (ulimit -n raises the number of open files)",
                    w->local_rank);
        goto out;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    co_guard_spec g = {.argv = worker_argv(j, w, &pool),
                       .envp = worker_env(j->spec, &j->round.is, &j->files, w, j->process.mark, &pool),
                       .file = j->spec->file,
                       .out_fd = out[1],
                       .err_fd = err[1],
                       .mask = j->process.old_mask,
                       .nofile = j->process.old_nofile};
    e = g.argv && g.envp ? co_guard_start(&w->guard, &w->sock, &g) : CO_ENOMEM;
    if (e == CO_OK) {
        w->s[0].fd = out[0];
        w->s[1].fd = err[0];
        out[0] = err[0] = -1;
    }
out:
    for (int i = 0; i < 2; i++) {
        if (out[i] >= 0)
            close(out[i]);
        if (err[i] >= 0)
            close(err[i]);
    }
    co_pool_fini(&pool);
    return e;
}

static void set_view(job *j)
{
    const co_round *r = &j->round.is;
    co_job_prefix prefix = j->spec->prefix;

    _Static_assert((int)CO_SCREEN_RANKS >= (int)CO_MAX_WORKERS, "a screen takes all workers of a host");
    co_screen_view_set(&j->screen, &(co_screen_view){.prefix = prefix == CO_PREFIX_RANK ||
                                                               (prefix == CO_PREFIX_AUTO && r->world > 1),
                                                     .host = r->hosts > 1 ? j->host : "",
                                                     .first_rank = r->first_rank,
                                                     .nproc = j->spec->terms.nproc});
}

co_err round_start(job *j, const co_round *r)
{
    const co_job_spec *spec = j->spec;

    j->round = (struct round){.is = *r};
    co_death_traces_take(&j->round.traces, "");
    set_view(j);
    CO_TRY(files_attempt(&j->files, r->restarts, spec->terms.nproc));
    joblog_open(&j->log, r->number); /* this host may keep the roster only since now */
    char last[32] = "";
    if (spec->terms.nproc > 1)
        snprintf(last, sizeof last, " to %d", r->first_rank + spec->terms.nproc - 1);
    files_merge_note(&j->files, co_roster_clock_offset(j->roster), "begins: attempt %d, rank%s %d%s of %d",
                     r->restarts, *last ? "s" : "", r->first_rank, last, r->world);
    j->round.workers = co_array((size_t)spec->terms.nproc, sizeof *j->round.workers);
    j->round.bars = co_array(2 * (size_t)spec->terms.nproc, sizeof *j->round.bars);
    if (!j->round.workers || !j->round.bars)
        return CO_ENOMEM;
    j->round.state = ROUND_RUNNING;
    for (int i = 0; i < spec->terms.nproc; i++) {
        worker *w = &j->round.workers[i];
        *w = (worker){.events = &j->events,
                      .mark = j->process.mark,
                      .local_rank = i,
                      .rank = r->first_rank + i,
                      .sock = -1};
        w->active_ns = w->printed_ns = co_now_ns();
        if (spec->tee_template)
            fill_template(w->tee_prefix, sizeof w->tee_prefix, spec->tee_template, j, w);
        else
            snprintf(w->tee_prefix, sizeof w->tee_prefix, "[%s%d]:", spec->role ? spec->role : "default",
                     spec->local_first + i);
        set_stream(j, w, 0);
        set_stream(j, w, 1);
        j->round.n = i + 1;
        CO_TRY(start_worker(j, w));
    }
    return CO_OK;
}

static void signal_all(job *j, int sig)
{
    for (int i = 0; i < j->round.n; i++)
        co_guard_signal(j->round.workers[i].sock, sig);
}

void round_end(job *j, int sig)
{
    if (j->round.state != ROUND_RUNNING)
        return;
    j->round.state = ROUND_ENDING;
    j->round.ending_ns = (int64_t)(co_wall_s() * 1e9);
    j->round.kill_ns = co_now_ns() + (uint64_t)(j->spec->grace_s * 1e9);
    for (int i = 0; i < j->round.n; i++) { /* exceptions from now on may result from the request to end */
        worker *w = &j->round.workers[i];
        if (w->exception[0])
            memcpy(w->earlier, w->exception, sizeof w->earlier);
        w->exception[0] = '\0';
    }
    signal_all(j, sig);
}

void round_kill(job *j)
{
    j->round.kill_ns = 0;
    for (int i = 0; i < j->round.n; i++)
        j->round.had_to_kill |= j->round.workers[i].sock >= 0; /* the worker, or a process that it left */
    signal_all(j, SIGKILL);
}

bool round_gone(job *j)
{
    for (int i = 0; i < j->round.n; i++)
        for (int k = 0; k < 2 && j->round.workers[i].sock < 0; k++)
            worker_close(&j->round.workers[i], k);
    for (int i = 0; i < j->round.n; i++)
        if (j->round.workers[i].sock >= 0 || j->round.workers[i].s[0].fd >= 0 ||
            j->round.workers[i].s[1].fd >= 0)
            return false;
    return true;
}

void round_free(job *j)
{
    for (int i = 0; i < j->round.n; i++)
        for (int k = 0; k < 2; k++) {
            stream *s = &j->round.workers[i].s[k];
            if (s->fd >= 0)
                close(s->fd);
            files_log_close(&j->files, &s->file);
            co_lines_fini(&s->lines);
        }
    co_free(j->round.workers);
    co_free(j->round.bars);
    j->round.workers = NULL;
    j->round.bars = NULL;
    j->round.n = j->round.n_bars = 0;
    j->round.state = ROUND_IDLE;
}
