/* machine.c -- what a run takes of its machines: measured once a second, written as events (system/...),
 * with mean and maximum in the summary.
 *
 * A host measures itself. A guest sends its figures to the host with the record, which treats them as its
 * own. An event has the mean of the measurements since the event before it. Events of a figure are
 * trainer.system_every seconds apart, more in a long run (co_use_pause). Measuring goes on every second. */
#include "cli/train_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

#define FIRST_LOOK_S 0.1
#define PAUSE_S      1.0

/* --- the figures of a host ------------------------------------------------------------------------------ */
static void see(figure *f, double x)
{
    if (isnan(x))
        return;
    f->sum += x;
    f->most = f->n == 0 || x > f->most ? x : f->most;
    f->n++;
    f->since_sum += x;
    f->since_n++;
}

/* The place of this host; NULL: there are too many, or no memory. The first is our own. */
static host_figures *figures_of(machine *m, const char *host)
{
    int i = 0;

    while (i < m->hosts && strcmp(m->host[i]->use.host, host) != 0)
        i++;
    if (i == MACHINE_HOSTS)
        return NULL;
    if (i == m->hosts) {
        if (!(m->host[i] = co_zalloc(sizeof **m->host)))
            return NULL;
        m->hosts++;
    }
    return m->host[i];
}

/* Takes what was measured on a host. Its figures begin anew if it has other ranks or GPUs than before. */
static void take(machine *m, const co_use *use)
{
    host_figures *h = figures_of(m, use->host);
    char name[CO_USE_LABEL];
    double value;

    if (!h)
        return;
    if (h->use.ranks != use->ranks || h->use.gpus != use->gpus)
        memset(h->figure, 0, sizeof h->figure);
    h->use = *use;
    for (int i = 0; co_use_at(use, i, name, &value); i++)
        see(&h->figure[i], value);
}

void machine_take(training *s, const json_t *use)
{
    co_use read;

    if (s->machine.hosts == 0 || co_use_read(&read, use) != CO_OK || !read.host[0])
        co_errclear(); /* our own come first */
    else {
        read.t = co_wall_s(); /* by our clock */
        take(&s->machine, &read);
    }
}

/* --- measuring this host -------------------------------------------------------------------------------- */
void machine_ranks(void *ctx, const co_rank_times *ranks, int n)
{
    machine *m = &((training *)ctx)->machine;

    m->ranks = n < CO_USE_RANKS ? n : CO_USE_RANKS;
    for (int i = 0; i < m->ranks; i++)
        m->rank[i].now = ranks[i];
}

static double share(uint64_t now, uint64_t then, double secs)
{
    double percent = now > then ? 100e-9 * (double)(now - then) / secs : 0;

    return percent < 100 ? percent : 100;
}

/* Times are published by steps, not by seconds: a step that ends just before we look may belong to the
 * time before. */
static void scale_down(double *part, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += part[i];
    for (int i = 0; i < n && sum > 100; i++)
        part[i] *= 100 / sum;
}

/* A rank publishes its times at the end of each step: the shares are of the time since it did so before. */
static void split_time(struct rank_mark *mark, co_use_rank *out, const co_use_rank *before, double now_s)
{
    const co_rank_times *now = &mark->now, *then = &mark->then;
    bool moved = now->compute_ns != then->compute_ns || now->exchange_ns != then->exchange_ns;
    double secs = now_s - mark->then_s;

    memmove(out->figure, before->figure, sizeof out->figure); /* `before` may be `out` */
    if (!moved)
        return;
    if (mark->then_s > 0 && secs > 0) {
        out->figure[CO_RANK_INPUT] = share(now->input_ns, then->input_ns, secs);
        out->figure[CO_RANK_COMPUTE] = share(now->compute_ns, then->compute_ns, secs);
        out->figure[CO_RANK_EXCHANGE] = share(now->exchange_ns, then->exchange_ns, secs);
        out->figure[CO_RANK_WAIT] = share(now->wait_ns, then->wait_ns, secs);
        scale_down(out->figure + CO_RANK_INPUT, CO_RANK_WAIT - CO_RANK_INPUT + 1);
    }
    mark->then = *now;
    mark->then_s = now_s;
}

static void look_at_rank(machine *m, int i, co_use_rank *out, const co_use_rank *before, double now_s)
{
    struct rank_mark *mark = &m->rank[i];
    const co_rank_times *now = &mark->now;
    bool stopped = false;

    split_time(mark, out, before, now_s);
    out->figure[CO_RANK_CPU] = out->figure[CO_RANK_MEMORY] = NAN;
    co_util_process(&m->util, now->pid, &out->figure[CO_RANK_CPU], &out->figure[CO_RANK_MEMORY], &stopped);
    if (now->beat != mark->beat || (now->waits && !stopped) || before->pid != now->pid)
        mark->beat_s = now_s;
    mark->beat = now->beat;
    out->pid = now->pid;
    out->still_s = now_s - mark->beat_s;
    snprintf(out->doing, sizeof out->doing, "%s",
             !now->pid ? "being replaced"
             : stopped ? "stopped"
                       : now->doing);
}

static void look_at_gpus(co_use *use)
{
    co_gpu g;

    use->gpus = co_gpus() < CO_USE_GPUS ? co_gpus() : CO_USE_GPUS;
    for (int i = 0; i < use->gpus; i++) {
        if (!co_gpu_look(i, &g))
            continue;
        use->gpu[i][CO_GPU_PERCENT] = g.percent;
        use->gpu[i][CO_GPU_MEMORY] = g.memory_mb;
        use->gpu[i][CO_GPU_TEMPERATURE] = g.temperature_c;
        use->gpu[i][CO_GPU_POWER] = g.power_w;
    }
}

static void fill(training *s, co_use *use, const co_sample *now, double now_s)
{
    machine *m = &s->machine;
    static const co_use none;
    const co_use *before = m->hosts ? &m->host[0]->use : &none;

    co_use_clear(use);
    use->t = co_wall_s();
    use->figure[CO_HOST_CPU] = now->cpu_percent;
    use->figure[CO_HOST_RUN_CPU] = now->run_cpu_percent;
    use->figure[CO_HOST_RUN_MEMORY] = now->memory_mb;
    use->figure[CO_HOST_MEMORY] = now->host_memory_percent;
    use->figure[CO_HOST_LOAD] = now->load;
    use->figure[CO_HOST_DISK_READ] = now->disk_read_mb_s;
    use->figure[CO_HOST_DISK_WRITE] = now->disk_write_mb_s;
    use->figure[CO_HOST_DISK_FREE] = co_disk_free_mb(s->folder ? co_folder_path(s->folder) : ".");
    use->figure[CO_HOST_NET_IN] = now->net_in_mb_s;
    use->figure[CO_HOST_NET_OUT] = now->net_out_mb_s;
    use->ranks = m->ranks;
    for (int i = 0; i < use->ranks; i++)
        look_at_rank(m, i, &use->rank[i], i < before->ranks ? &before->rank[i] : &use->rank[i], now_s);
    look_at_gpus(use);
}

/* --- telling -------------------------------------------------------------------------------------------- */
/* Events of one host; how many there were. */
static int record_host(training *s, host_figures *h)
{
    char name[CO_USE_LABEL], label[CO_USE_LABEL];
    double value;
    int n = 0;

    for (int i = 0; co_use_at(&h->use, i, name, &value); i++) {
        figure *f = &h->figure[i];
        if (!f->since_n)
            continue;
        co_use_label(label, h->use.host, name);
        co_event_scalar(s->folder, s->last.step, label, f->since_sum / (double)f->since_n);
        f->since_sum = 0;
        f->since_n = 0;
        n++;
    }
    return n;
}

static void record(training *s, double now_s)
{
    machine *m = &s->machine;
    double every = s->app.cfg->system_every;
    int n = 0;

    if (every <= 0 || !s->last.step || now_s < m->next_s)
        return;
    for (int h = 0; h < m->hosts; h++)
        n += record_host(s, m->host[h]);
    m->next_s = now_s + co_use_pause(every, now_s - m->began_s, n);
}

/* For `cohort top` on this machine. */
static void share_use(const machine *m)
{
    json_t *all = json_array();

    for (int h = 0; h < m->hosts; h++)
        json_array_append_new(all, co_use_json(&m->host[h]->use));
    co_live_use(all);
    json_decref(all);
}

void machine_look(training *s)
{
    co_use use;
    machine *m = &s->machine;
    co_sample now;
    double t = co_now_s(), pause = m->looks == 1 ? FIRST_LOOK_S : PAUSE_S;

    if (m->looks && t - m->util.at_s < pause)
        return;
    bool whole = co_util_look(&m->util, t, &now);
    if (m->looks++ == 0)
        m->began_s = t;
    if (!whole)
        return;
    fill(s, &use, &now, t);
    take(m, &use);
    if (s->folder && s->last.step && !m->gpus_first.len)
        machine_gpus(s, false);
    share_use(m);
    if (s->folder)
        record(s, t);
}

/* Of this host; the ranks' sums are in `hosts`. A mean of equal values may be rounded above them: the largest limits
 * it. */
json_t *machine_json(const training *s)
{
    char name[CO_USE_LABEL];
    double value;
    json_t *v = json_object();
    const machine *m = &s->machine;

    for (int i = 0; m->hosts && co_use_at(&m->host[0]->use, i, name, &value); i++) {
        const figure *f = &m->host[0]->figure[i];
        if (f->n && strncmp(name, "rank.", 5) != 0)
            json_object_set_new(
                v, name, json_pack("{s:f, s:f}", "mean", fmin(f->sum / (double)f->n, f->most), "max", f->most));
    }
    return v;
}

void machine_gpus(training *s, bool last)
{
    machine *m = &s->machine;

    co_str_clear(last ? &m->gpus_last : &m->gpus_first);
    if (!co_gpu_table(last ? &m->gpus_last : &m->gpus_first))
        return;
    co_str text = {0};
    co_str_addf(&text, "%s%s%s", co_str_text(&m->gpus_first), last ? "\n" : "", co_str_text(&m->gpus_last));
    if (co_str_err(&text) ||
        co_folder_write(s->folder, "gpus.txt", co_str_text(&text), strlen(co_str_text(&text))) != CO_OK)
        co_log_say(CO_LOG_WARN, "%s", co_errmsg());
    co_str_fini(&text);
}

void machine_close(training *s)
{
    machine *m = &s->machine;

    for (int h = 0; h < m->hosts; h++)
        co_free(m->host[h]);
    m->hosts = 0;
    co_str_fini(&m->gpus_first);
    co_str_fini(&m->gpus_last);
}
