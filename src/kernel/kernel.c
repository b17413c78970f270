/* kernel.c -- finds a provider by name. The tables are filled once, on the first call, and never change. Only
 * providers.c lists the providers. */
#include "kernel/kernel.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel_int.h"

enum { MOST = 16 }; /* providers */

static struct table {
    co_kernels k;
    char name[32]; /* "avx2.2" */
} tables[MOST];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void)
{
    CO_ASSERT(provider_count <= MOST, "a table for each provider");
    for (int i = 0; i < provider_count; i++) {
        const provider *p = &providers[i];
        struct table *t = &tables[i];
        if (!p->has()) /* fill() itself may use the instructions */
            continue;
        p->fill(&t->k);
        t->k.level = p->name;
        t->k.numerics = p->numerics;
        snprintf(t->name, sizeof t->name, "%s.%d", p->numerics, t->k.version);
    }
}

const char *co_op_name(co_op op)
{
    static const char *const names[] = {
#define X(id, name) name,
        CO_OPS(X)
#undef X
    };

    return op >= 0 && op < CO_OP_COUNT ? names[op] : "unknown operator";
}

static co_err unknown(const char *level)
{
    char names[256] = "auto";

    for (int i = 0; i < provider_count; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", providers[i].name);
    }
    return co_fail(CO_EINPUT, "'%s': no such level (there are %s)", level, names);
}

/* Is `level` the provider's name, or NAME.VERSION as the first screen and the record write it? */
static bool is_named(int i, const char *level)
{
    return strcmp(level, providers[i].name) == 0 || (tables[i].name[0] && strcmp(level, tables[i].name) == 0);
}

co_err co_kernels_check(const char *level)
{
    size_t n = strcspn(level, ".");

    pthread_once(&filled, fill);
    if (strcmp(level, "auto") == 0)
        return CO_OK;
    for (int i = 0; i < provider_count; i++)
        if (is_named(i, level))
            return CO_OK;
    for (int i = 0; i < provider_count; i++)
        if (level[n] && strlen(providers[i].name) == n && memcmp(level, providers[i].name, n) == 0)
            return tables[i].name[0] ? co_fail(CO_EINPUT, "'%s': this program has %s", level, tables[i].name)
                                     : co_fail(CO_EINPUT, "'%s': this CPU lacks %s (use 'auto' or 'ref')",
                                               level, providers[i].needs);
    return unknown(level);
}

const char *co_kernels_plain(const char *level)
{
    pthread_once(&filled, fill);
    for (int i = 0; i < provider_count; i++)
        if (tables[i].name[0] && strcmp(level, tables[i].name) == 0)
            return providers[i].numerics;
    return level;
}

co_err co_kernels_get(const co_kernels **out, const char *level)
{
    bool best = !strcmp(level, "auto");

    CO_TRY(co_kernels_check(level));
    for (int i = 0; i < provider_count; i++) {
        const provider *p = &providers[i];
        if (!best && !is_named(i, level))
            continue;
        if (!best && !p->has())
            return co_fail(CO_EINPUT, "'%s': this CPU lacks %s (use 'auto' or 'ref')", level, p->needs);
        if (p->has()) {
            *out = &tables[i].k;
            return CO_OK;
        }
    }
    return unknown(level);
}

const char *co_kernels_name(const co_kernels *k)
{
    for (int i = 0; i < provider_count; i++)
        if (k == &tables[i].k)
            return tables[i].name;
    return k->level; /* not in this table: a test brought its own */
}

const char *co_kernels_algorithm(const co_kernels *k, co_op op, const co_call *c)
{
    const co_kernels *ref;

    if (k->row[op].algorithm)
        return k->row[op].algorithm(c);
    if (co_kernels_get(&ref, "ref") == CO_OK && ref->row[op].fn == k->row[op].fn)
        return ref->level;
    return k->level;
}

int64_t dims_product(const co_shape *s, int from, int to)
{
    int64_t n = 1;

    for (int i = from; i < to && i < s->nd; i++)
        n *= s->d[i];
    return n;
}

int64_t shape_last(const co_shape *s)
{
    return s->nd > 0 ? s->d[s->nd - 1] : 1;
}

int64_t shape_rows(const co_shape *s)
{
    return dims_product(s, 0, s->nd - 1);
}

double layer_norm_rstd(double squares, int64_t n, const co_attr *attr)
{
    if (!attr->unbiased)
        return 1 / sqrt(squares / (double)n + attr->eps);
    return 1 / (sqrt(squares / (double)(n > 1 ? n - 1 : 1)) + attr->eps);
}

double layer_norm_divisor(double rstd, int64_t n, const co_attr *attr)
{
    double share = 1 - attr->eps * rstd; /* deviation / (deviation + eps) */

    if (!attr->unbiased)
        return (double)n;
    return share > 1e-6 ? (double)(n > 1 ? n - 1 : 1) * share : INFINITY;
}

/* --- calls ---------------------------------------------------------------------------------------------- */
struct whole_call {
    co_kernel_fn fn;
    const co_call *c;
};

/* Thread ith's share of a call. */
static void run_share(void *ctx, int ith, int nth)
{
    const struct whole_call *whole = ctx;
    co_call share = *whole->c;

    share.ith = ith;
    share.nth = nth;
    whole->fn(&share);
}

static void run_shares(co_kernel_fn fn, const co_call *c, co_team *team, int nth)
{
    struct whole_call whole = {fn, c};

    if (nth <= co_team_size(team))
        co_team_run(team, nth, run_share, &whole);
    else
        for (int ith = nth - 1; ith >= 0; ith--)
            run_share(&whole, ith, nth);
}

void co_kernel_run(const co_kernel_row *row, const co_call *c, co_team *team, int nth)
{
    if (nth == 1) { /* most calls of a small model: nobody to meet */
        run_share(&(struct whole_call){row->fn, c}, 0, 1);
        return;
    }
    if (row->prepare)
        run_shares(row->prepare, c, team, nth);
    run_shares(row->fn, c, team, nth);
}
