/* use.c -- names of the machine's figures, and their JSON:
 *
 *     {"host": "node2", "t": 1794789698.7, "figures": {"cpu_percent": 93.1, ...},
 *      "ranks": [{"pid": 41, "still_s": 0, "doing": "computing", "figures": {"compute_percent": 88.0, ...}}],
 *      "gpus": [{"percent": 37}]}
 *
 * About 200 bytes a rank. What comes from another host is checked: bounds, types, characters. */
#include "track/use.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char *const host_names[CO_HOST_FIGURES] = {[CO_HOST_CPU] = "cpu_percent",
                                                        [CO_HOST_RUN_CPU] = "run_cpu_percent",
                                                        [CO_HOST_RUN_MEMORY] = "memory_mb",
                                                        [CO_HOST_MEMORY] = "host_memory_percent",
                                                        [CO_HOST_LOAD] = "load",
                                                        [CO_HOST_DISK_READ] = "disk_read_mb_s",
                                                        [CO_HOST_DISK_WRITE] = "disk_write_mb_s",
                                                        [CO_HOST_DISK_FREE] = "disk_free_mb",
                                                        [CO_HOST_NET_IN] = "net_in_mb_s",
                                                        [CO_HOST_NET_OUT] = "net_out_mb_s"};
static const char *const rank_names[CO_RANK_FIGURES] = {
    [CO_RANK_CPU] = "cpu_percent",           [CO_RANK_MEMORY] = "memory_mb",
    [CO_RANK_INPUT] = "input_percent",       [CO_RANK_COMPUTE] = "compute_percent",
    [CO_RANK_EXCHANGE] = "exchange_percent", [CO_RANK_WAIT] = "wait_percent"};
static const char *const gpu_names[CO_GPU_FIGURES] = {"percent", "memory_mb", "temperature_c", "power_w"};

static void forget(double *figure, int n)
{
    for (int i = 0; i < n; i++)
        figure[i] = NAN;
}

void co_use_clear(co_use *u)
{
    memset(u, 0, sizeof *u);
    forget(u->figure, CO_HOST_FIGURES);
    for (int r = 0; r < CO_USE_RANKS; r++)
        forget(u->rank[r].figure, CO_RANK_FIGURES);
    forget(u->gpu[0], CO_USE_GPUS * CO_GPU_FIGURES);
}

bool co_use_at(const co_use *u, int i, char name[CO_USE_LABEL], double *value)
{
    if (i < CO_HOST_FIGURES) {
        snprintf(name, CO_USE_LABEL, "%s", host_names[i]);
        *value = u->figure[i];
        return true;
    }
    i -= CO_HOST_FIGURES;
    if (i < u->gpus * CO_GPU_FIGURES) {
        int gpu = i / CO_GPU_FIGURES, k = i % CO_GPU_FIGURES;
        snprintf(name, CO_USE_LABEL, "gpu.%d.%s", gpu, gpu_names[k]);
        *value = u->gpu[gpu][k];
        return true;
    }
    i -= u->gpus * CO_GPU_FIGURES;
    if (i >= u->ranks * CO_RANK_FIGURES)
        return false;
    int rank = i / CO_RANK_FIGURES, k = i % CO_RANK_FIGURES;
    snprintf(name, CO_USE_LABEL, "rank.%d.%s", rank, rank_names[k]);
    *value = u->rank[rank].figure[k];
    return true;
}

/* The place of a name in its table; -1: it is not there. */
static int find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* "3.cpu_percent": the number, below `most`, and the rest. */
static bool numbered(const char *text, int most, int *number, const char **rest)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 3 || text[digits] != '.')
        return false;
    *number = atoi(text);
    *rest = text + digits + 1;
    return *number < most;
}

bool co_use_put(co_use *u, const char *name, double value)
{
    const char *rest;
    int number, at;

    if (strncmp(name, "rank.", 5) == 0 && numbered(name + 5, CO_USE_RANKS, &number, &rest) &&
        (at = find(rank_names, CO_RANK_FIGURES, rest)) >= 0) {
        u->ranks = number >= u->ranks ? number + 1 : u->ranks;
        u->rank[number].figure[at] = value;
        return true;
    }
    if (strncmp(name, "gpu.", 4) == 0 && numbered(name + 4, CO_USE_GPUS, &number, &rest) &&
        (at = find(gpu_names, CO_GPU_FIGURES, rest)) >= 0) {
        u->gpus = number >= u->gpus ? number + 1 : u->gpus;
        u->gpu[number][at] = value;
        return true;
    }
    if ((at = find(host_names, CO_HOST_FIGURES, name)) < 0)
        return false;
    u->figure[at] = value;
    return true;
}

/* --- names in the record -------------------------------------------------------------------------------- */
void co_use_label(char out[CO_USE_LABEL], const char *host, const char *name)
{
    snprintf(out, CO_USE_LABEL, "system/%.*s%s%.40s", CO_USE_HOST - 1, host, *host ? "/" : "", name);
}

bool co_use_split(const char *label, char host[CO_USE_HOST], const char **name)
{
    const char *rest = label + strlen("system/"), *slash;

    if (strncmp(label, "system/", strlen("system/")) != 0)
        return false;
    slash = strchr(rest, '/');
    size_t n = slash ? (size_t)(slash - rest) : 0;
    if (n >= CO_USE_HOST || (slash && n == 0))
        return false;
    snprintf(host, CO_USE_HOST, "%.*s", (int)n, rest);
    *name = slash ? slash + 1 : rest;
    return !strchr(*name, '/');
}

void co_use_host(char out[CO_USE_HOST], const char *name)
{
    size_t n = 0;

    for (; name[n] && n < CO_USE_HOST - 1; n++)
        out[n] = isalnum((unsigned char)name[n]) || strchr("._-", name[n]) ? name[n] : '_';
    if (n == 0)
        out[n++] = '_';
    out[n] = '\0';
}

double co_use_pause(double every, double since_s, int figures)
{
    enum { LINES_OF_A_LONG_RUN = 300, FIGURES_AT_ONCE = 48 };
    double pause = since_s / LINES_OF_A_LONG_RUN > every ? since_s / LINES_OF_A_LONG_RUN : every;

    return figures > FIGURES_AT_ONCE ? pause * figures / FIGURES_AT_ONCE : pause;
}

/* --- JSON ----------------------------------------------------------------------------------------------- */
/* Three digits after the point are enough to look at. */
static json_t *figures_json(const double *figure, const char *const *names, int n)
{
    json_t *v = json_object();

    for (int i = 0; i < n; i++)
        if (isfinite(figure[i]))
            json_object_set_new(v, names[i], json_real(round(figure[i] * 1000) / 1000));
    return v;
}

json_t *co_use_json(const co_use *u)
{
    json_t *ranks = json_array(), *gpus = json_array();

    for (int i = 0; i < u->ranks; i++) {
        const co_use_rank *r = &u->rank[i];
        json_array_append_new(ranks, json_pack("{s:i, s:f, s:s, s:o}", "pid", r->pid, "still_s",
                                               round(r->still_s * 10) / 10, "doing", r->doing, "figures",
                                               figures_json(r->figure, rank_names, CO_RANK_FIGURES)));
    }
    for (int i = 0; i < u->gpus; i++)
        json_array_append_new(gpus, figures_json(u->gpu[i], gpu_names, CO_GPU_FIGURES));
    return json_pack("{s:s, s:f, s:o, s:o, s:o}", "host", u->host, "t", u->t, "figures",
                     figures_json(u->figure, host_names, CO_HOST_FIGURES), "ranks", ranks, "gpus", gpus);
}

/* A finite number of a bearable size; else nan. */
static double number_of(const json_t *v)
{
    double x = json_is_number(v) ? json_number_value(v) : NAN;

    return isfinite(x) && fabs(x) < 1e15 ? x : NAN;
}

static void read_figures(double *figure, const char *const *names, int n, const json_t *v)
{
    for (int i = 0; i < n; i++)
        figure[i] = number_of(json_object_get(v, names[i]));
}

/* Text of printable ASCII that fits; false: it is another. */
static bool read_text(char *out, size_t size, const char *text)
{
    if (!text || strlen(text) >= size)
        return false;
    for (const char *at = text; *at; at++)
        if (*at < ' ' || *at > '~')
            return false;
    snprintf(out, size, "%s", text);
    return true;
}

static bool read_rank(co_use_rank *r, const json_t *v)
{
    long long pid;

    read_figures(r->figure, rank_names, CO_RANK_FIGURES, json_object_get(v, "figures"));
    r->still_s = number_of(json_object_get(v, "still_s"));
    if (!(r->still_s >= 0) || !co_json_i64(v, "pid", &pid) || pid < 0 || pid > INT_MAX)
        return false;
    r->pid = (int)pid;
    return read_text(r->doing, sizeof r->doing, co_json_str(v, "doing"));
}

static co_err bad(const char *what)
{
    return co_fail(CO_EFORMAT, "figures of a host: %s", what);
}

co_err co_use_read(co_use *out, const json_t *v)
{
    co_use u;
    char host[CO_USE_HOST];
    const json_t *ranks = json_object_get(v, "ranks"), *gpus = json_object_get(v, "gpus");

    co_use_clear(&u);
    if (!read_text(u.host, sizeof u.host, co_json_str(v, "host")))
        return bad("\"host\" is no short text");
    co_use_host(host, u.host);
    if (u.host[0] && strcmp(host, u.host) != 0)
        return bad("\"host\" has characters that no name has");
    u.t = number_of(json_object_get(v, "t"));
    if (isnan(u.t))
        return bad("\"t\" is no number");
    if (!json_is_array(ranks) || json_array_size(ranks) > CO_USE_RANKS || !json_is_array(gpus) ||
        json_array_size(gpus) > CO_USE_GPUS)
        return bad("\"ranks\" or \"gpus\" is no list, or a list that is too long");
    read_figures(u.figure, host_names, CO_HOST_FIGURES, json_object_get(v, "figures"));
    for (u.ranks = 0; u.ranks < (int)json_array_size(ranks); u.ranks++)
        if (!read_rank(&u.rank[u.ranks], json_array_get(ranks, (size_t)u.ranks)))
            return bad("a rank without pid, still_s or doing");
    for (u.gpus = 0; u.gpus < (int)json_array_size(gpus); u.gpus++)
        read_figures(u.gpu[u.gpus], gpu_names, CO_GPU_FIGURES, json_array_get(gpus, (size_t)u.gpus));
    *out = u;
    return CO_OK;
}
