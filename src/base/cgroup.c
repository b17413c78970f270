/* cgroup.c -- walk from this process's own group to the top and keep the smallest limit.
 *
 * /proc/self/cgroup has one line per hierarchy, `number:controllers:path`; the version 2 line has number 0
 * and no controllers. Inside a container the path may be the host's path, although only the container's own
 * part is mounted. Folders that do not exist are skipped; the top of the mount holds the container's limits.
 */
#include "base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The first `n` numbers of a file. False if there is no such file or it holds fewer numbers ("max"). */
static bool numbers_in(const char *dir, const char *name, int64_t *v, int n)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%s", dir, name), got = 0;
    FILE *f = len < (int)sizeof path ? fopen(path, "re") : NULL;

    while (f && got < n && fscanf(f, "%" SCNd64, &v[got]) == 1)
        got++;
    if (f)
        fclose(f);
    return got == n;
}

/* Bytes of page cache charged to the group. The kernel frees them on demand, as it does those in
 * MemAvailable. */
static int64_t cached_in(const char *dir, const char *inactive, const char *active)
{
    char path[PATH_MAX], line[128], name[64];
    int len = snprintf(path, sizeof path, "%s/memory.stat", dir);
    FILE *f = len < (int)sizeof path ? fopen(path, "re") : NULL;
    int64_t sum = 0, n;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%63s %" SCNd64, name, &n) == 2 && n > 0 && n < INT64_MAX / 4 &&
            (strcmp(name, inactive) == 0 || strcmp(name, active) == 0))
            sum += n;
    if (f)
        fclose(f);
    return sum;
}

static void limit_memory(co_cgroup *out, const char *dir, const char *limit, const char *usage, int64_t cached)
{
    int64_t most, used = 0;

    if (!numbers_in(dir, limit, &most, 1) || most < 0)
        return;
    numbers_in(dir, usage, &used, 1);
    used = used > cached ? used - cached : 0;
    uint64_t left = most > used ? (uint64_t)(most - used) : 0;
    if (left < out->memory_left)
        out->memory_left = left;
}

static void limit_cpus(co_cgroup *out, int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0 || quota / period >= INT_MAX)
        return;
    int cpus = (int)(quota / period + (quota % period != 0));
    if (!out->cpus || cpus < out->cpus)
        out->cpus = cpus;
}

static void look_v2(co_cgroup *out, const char *dir)
{
    int64_t v[2];

    limit_memory(out, dir, "memory.max", "memory.current", cached_in(dir, "inactive_file", "active_file"));
    if (numbers_in(dir, "cpu.max", v, 2))
        limit_cpus(out, v[0], v[1]);
}

static void look_v1_memory(co_cgroup *out, const char *dir)
{
    limit_memory(out, dir, "memory.limit_in_bytes", "memory.usage_in_bytes",
                 cached_in(dir, "total_inactive_file", "total_active_file"));
}

static void look_v1_cpu(co_cgroup *out, const char *dir)
{
    int64_t quota, period;

    if (numbers_in(dir, "cpu.cfs_quota_us", &quota, 1) && numbers_in(dir, "cpu.cfs_period_us", &period, 1))
        limit_cpus(out, quota, period);
}

/* Calls look() for every folder from mount + path up to the mount itself. */
static void walk(co_cgroup *out, const char *root, const char *mount, const char *path,
                 void (*look)(co_cgroup *, const char *))
{
    char dir[PATH_MAX];
    int top = snprintf(dir, sizeof dir, "%s/sys/fs/cgroup%s", root, mount);
    bool outside = strstr(path, "/..") != NULL; /* the path lies outside our mount: only the top is visible */

    if (top >= (int)sizeof dir)
        return;
    if (!outside && strlen(path) < sizeof dir - (size_t)top)
        strcpy(dir + top, path);
    for (size_t len = strlen(dir); len >= (size_t)top; len--)
        if (len == (size_t)top || dir[len] == '/' || dir[len] == '\0') {
            dir[len] = '\0';
            look(out, dir);
        }
}

/* Is `name` an item of this comma-separated list? */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static void look_at_line(co_cgroup *out, const char *root, char *line)
{
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(++controllers, ':') : NULL;

    if (!path)
        return;
    *path++ = '\0';
    if (controllers[0] == '\0') {
        walk(out, root, "", path, look_v2);
        walk(out, root, "/unified", path, look_v2);
    }
    if (listed(controllers, "memory"))
        walk(out, root, "/memory", path, look_v1_memory);
    if (listed(controllers, "cpu"))
        walk(out, root, "/cpu", path, look_v1_cpu);
}

void co_cgroup_read(co_cgroup *out, const char *root)
{
    char line[PATH_MAX];

    *out = (co_cgroup){.memory_left = UINT64_MAX};
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        look_at_line(out, root, line);
    }
    if (f)
        fclose(f);
}
