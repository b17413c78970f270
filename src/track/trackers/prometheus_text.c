/* prometheus_text.c -- scalars of the record as metrics of Prometheus.
 *
 *     train/loss_step              cohort_train_loss_step
 *     system/cpu_percent           cohort_system_cpu_ratio{host="a"}              percent / 100
 *     system/b/rank.3.memory_mb    cohort_rank_memory_bytes{host="b",rank="3"}    10^6 bytes
 *
 * promtool wants base units and no abbreviated ones; `units` has those that the record uses.
 */
#include "track/trackers/prometheus_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* The first that fits the end of a name counts. */
static const struct {
    const char *tail, *becomes;
    double times;
} units[] = {{"_mb_s", "_bytes_per_second", 1e6}, {"_mb", "_bytes", 1e6}, {"_percent", "_ratio", 0.01},
             {"_ms", "_seconds", 1e-3},           {"_c", "_celsius", 1},  {"_w", "_watts", 1}};

/* "rank.3.memory_mb": its kind, number and the rest; false if the name is not of that form. */
static bool numbered(const char *name, const char *kind, char number[8], const char **rest)
{
    size_t n = strlen(kind), digits;

    if (strncmp(name, kind, n) != 0 || name[n] != '.')
        return false;
    digits = strspn(name + n + 1, "0123456789");
    if (digits == 0 || digits > 6 || name[n + 1 + digits] != '.')
        return false;
    snprintf(number, 8, "%.*s", (int)digits, name + n + 1);
    *rest = name + n + digits + 2;
    return true;
}

static void add_label(char labels[METRIC_LABELS], const char *key, const char *value)
{
    size_t at = strlen(labels);
    int n = snprintf(labels + at, METRIC_LABELS - at, "%s%s=\"", at ? "," : "", key);

    at += (size_t)n;
    for (; *value && at < METRIC_LABELS - 4; value++) {
        if (*value == '"' || *value == '\\')
            labels[at++] = '\\';
        labels[at++] = *value == '\n' ? ' ' : *value;
    }
    labels[at++] = '"';
    labels[at] = '\0';
}

/* The part of a name that is left, in the letters that a metric may have, in base units. */
static void finish(struct metric *m, const char *kind, const char *rest)
{
    if (strcmp(rest, "percent") == 0)
        rest = "utilization_percent";
    snprintf(m->name, sizeof m->name - 24, "cohort_%s%s%.100s", kind, *kind ? "_" : "", rest);
    for (char *at = m->name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *at))
            *at = '_';
    for (size_t i = 0; i < CO_COUNT(units); i++) {
        size_t len = strlen(m->name), tail = strlen(units[i].tail);
        if (len < tail || strcmp(m->name + len - tail, units[i].tail) != 0)
            continue;
        strcpy(m->name + len - tail, units[i].becomes); /* there is room: see above */
        m->value *= units[i].times;
        return;
    }
}

void metric_of(struct metric *out, const char *name, double value, const char *host)
{
    static const char system[] = "system/";
    static const char *const kinds[] = {"rank", "gpu"};
    char number[8], other[128];
    const char *rest = name + strlen(system);

    *out = (struct metric){.value = value};
    snprintf(out->from, sizeof out->from, "%s", name);
    if (strncmp(name, system, strlen(system)) != 0) {
        finish(out, "", name);
        return;
    }
    const char *slash = strchr(rest, '/');
    if (slash) {
        snprintf(other, sizeof other, "%.*s", (int)(slash - rest), rest);
        host = other;
        rest = slash + 1;
    }
    add_label(out->labels, "host", host);
    for (size_t i = 0; i < CO_COUNT(kinds); i++)
        if (numbered(rest, kinds[i], number, &rest)) {
            add_label(out->labels, kinds[i], number);
            finish(out, kinds[i], rest);
            return;
        }
    finish(out, "system", rest);
}

static int compare(const struct metric *a, const struct metric *b)
{
    int names = strcmp(a->name, b->name);

    return names ? names : strcmp(a->labels, b->labels);
}

co_err metrics_set(struct metrics *all, const struct metric *m)
{
    size_t lo = 0, hi = all->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (compare(&all->list[mid], m) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < all->n && compare(&all->list[lo], m) == 0) {
        if (strcmp(all->list[lo].from, m->from) == 0)
            all->list[lo].value = m->value;
        return CO_OK;
    }
    if (all->n == METRICS_MOST)
        return co_fail(CO_EFORMAT, "events.jsonl has more than %d names", METRICS_MOST);
    if (all->n == all->room) {
        struct metric *more = co_realloc(all->list, (2 * all->room + 16) * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        all->list = more;
        all->room = 2 * all->room + 16;
    }
    memmove(all->list + lo + 1, all->list + lo, (all->n++ - lo) * sizeof *all->list);
    all->list[lo] = *m;
    return CO_OK;
}

static void print_value(co_str *out, double x)
{
    if (isfinite(x))
        co_str_addf64(out, x);
    else
        co_str_add(out, isnan(x) ? "NaN" : x > 0 ? "+Inf" : "-Inf");
}

static void print_text(co_str *out, const char *text)
{
    for (; *text; text++)
        co_str_addf(out, *text == '\\' ? "\\%c" : "%c", *text == '\n' ? ' ' : *text);
}

void metrics_print(co_str *out, const struct metrics *all, const char *run)
{
    char labels[METRIC_LABELS] = "";

    add_label(labels, "run", run);
    for (size_t i = 0; i < all->n; i++) {
        const struct metric *m = &all->list[i];
        if (i == 0 || strcmp(m[-1].name, m->name) != 0) {
            co_str_addf(out, "# HELP %s ", m->name);
            print_text(out, m->from);
            co_str_addf(out, " of the run's record.\n# TYPE %s %s\n", m->name,
                        m->counter ? "counter" : "gauge");
        }
        co_str_addf(out, "%s{%s%s%s} ", m->name, labels, *m->labels ? "," : "", m->labels);
        print_value(out, m->value);
        co_str_add(out, "\n");
    }
}
