/* machine.c -- the use of the machine during a run: measured once a second, written as events (system/...),
 * with mean and maximum in the summary.
 *
 * A long run does not need a line every second for hours: the pause between two lines of a figure grows to
 * 1/600 of the time so far, about 3,000 lines in ten hours. Measuring goes on every second. */
#include "cli/train_int.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"

#define FIRST_LOOK_S 0.1
#define PAUSE_S      1.0

static void see(figure *f, double x)
{
    if (isnan(x))
        return;
    f->last = x;
    f->sum += x;
    f->most = f->n == 0 || x > f->most ? x : f->most;
    f->n++;
}

static void look_at_gpus(machine *m)
{
    co_gpu g;

    m->gpus = co_gpus();
    for (int i = 0; i < m->gpus; i++) {
        if (!co_gpu_look(i, &g))
            continue;
        see(&m->gpu[i][0], g.percent < 0 ? NAN : g.percent);
        see(&m->gpu[i][1], g.memory_mb);
    }
}

/* Returns names and figures one after the other: system/load, system/gpu.0.percent ... False past the
 * last. */
static bool figure_at(const machine *m, int i, char name[40], const figure **out)
{
    static const char *const names[FIGURES] = {"cpu_percent", "run_cpu_percent", "memory_mb",
                                               "host_memory_percent", "load"};

    if (i < FIGURES) {
        snprintf(name, 40, "%s", names[i]);
        *out = &m->figure[i];
        return true;
    }
    i -= FIGURES;
    if (i >= 2 * m->gpus)
        return false;
    snprintf(name, 40, "gpu.%d.%s", i / 2, i % 2 ? "memory_mb" : "percent");
    *out = &m->gpu[i / 2][i % 2];
    return true;
}

static void record(training *s)
{
    const figure *f;
    char name[40], key[64];

    for (int i = 0; figure_at(&s->machine, i, name, &f); i++) {
        snprintf(key, sizeof key, "system/%s", name);
        if (f->n)
            co_event_scalar(s->folder, s->last.step, key, f->last);
    }
}

void machine_look(training *s)
{
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
    see(&m->figure[0], now.cpu_percent);
    see(&m->figure[1], now.run_cpu_percent);
    see(&m->figure[2], now.memory_mb);
    see(&m->figure[3], now.host_memory_percent);
    see(&m->figure[4], now.load);
    look_at_gpus(m);
    if (s->last.step && t >= m->next_s) {
        record(s);
        m->next_s = t + (t - m->began_s) / 600;
    }
}

json_t *machine_json(const training *s)
{
    const figure *f;
    char name[40];
    json_t *v = json_object();

    for (int i = 0; figure_at(&s->machine, i, name, &f); i++)
        if (f->n)
            json_object_set_new(v, name,
                                json_pack("{s:f, s:f}", "mean", f->sum / (double)f->n, "max", f->most));
    return v;
}
