/* evidence.c -- reads what the machine knows about a death: counters of the out-of-memory killer, the
 * kernel's log, shared memory, the CPU. A file that is missing or unreadable proves nothing. */
#include "proc/evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"

/* The number after `name` in a file of "name number" lines; -1 if it is not there. */
static long long counter_in(const char *path, const char *name)
{
    char key[64];
    long long n, found = -1;
    FILE *f = fopen(path, "re");

    while (f && found < 0 && fscanf(f, "%63s %lld", key, &n) == 2)
        if (strcmp(key, name) == 0)
            found = n;
    if (f)
        fclose(f);
    return found;
}

/* cgroup version 2 counts our group's kills in memory.events, version 1 in memory.oom_control. Without
 * either, the counter of the topmost group is used, then that of the machine. */
long long co_evidence_oom_kills(const char *root)
{
    char line[PATH_MAX / 2], path[PATH_MAX];
    long long n = -1;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && n < 0 && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        bool v2 = controllers[1] == '\0', memory = strstr(controllers, "memory") != NULL;
        if (v2 || memory) {
            snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%s/%s", root, v2 ? "" : "/memory", group,
                     v2 ? "memory.events" : "memory.oom_control");
            n = counter_in(path, "oom_kill");
        }
    }
    if (f)
        fclose(f);
    if (n >= 0)
        return n;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/memory.events", root);
    n = counter_in(path, "oom_kill");
    snprintf(path, sizeof path, "%s/proc/vmstat", root);
    return n >= 0 ? n : counter_in(path, "oom_kill");
}

bool co_evidence_killed_in(const char *kmsg, int pid)
{
    char text[8192], words[48];
    int fd = open(kmsg, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool found = false;
    ssize_t n;

    snprintf(words, sizeof words, "Killed process %d ", pid);
    /* one record per read */
    while (fd >= 0 && ((n = read(fd, text, sizeof text - 1)) > 0 || (n < 0 && errno == EPIPE)))
        if (n > 0) {
            text[n] = '\0';
            found |= strstr(text, words) != NULL;
        }
    if (fd >= 0)
        close(fd);
    return found;
}

bool co_evidence_shm_full(const char *path, char *says, size_t size)
{
    struct statvfs v;

    if (statvfs(path, &v) != 0 || v.f_blocks == 0)
        return false;
    double mib = (double)v.f_blocks * (double)v.f_frsize / 1048576;
    if (v.f_bavail * 20 < v.f_blocks)
        snprintf(says, size, "%s is full (%.0f MiB)", path, mib);
    else if (mib <= 64)
        snprintf(says, size, "%s holds %.0f MiB only", path, mib);
    else
        return false;
    return true;
}

bool co_evidence_no_instructions(const char *cpuinfo, char *says, size_t size)
{
    static const char *const sets[] = {"sse4_2", "avx",     "f16c",        "fma",     "bmi2",
                                       "avx2",   "avx512f", "avx512_bf16", "amx_tile"};
    char line[8192] = "";
    FILE *f = fopen(cpuinfo, "re");
    size_t at = 0;

    while (f && fgets(line, sizeof line, f) && strncmp(line, "flags", 5) != 0)
        line[0] = '\0';
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = ' ';
    if (!line[0] || line[0] == ' ')
        return false;
    for (size_t i = 0; i < CO_COUNT(sets); i++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", sets[i]);
        if (!strstr(line, word) && at < size)
            at += (size_t)snprintf(says + at, size - at, "%s%s", at ? ", " : "this CPU has no ", sets[i]);
    }
    return at > 0;
}

/* {"message": {"message": "ValueError: x", ...}} or {"message": "text"}; the first line of it. */
bool co_evidence_error_file(const char *path, char *says, size_t size)
{
    json_t *v = NULL;

    if (!co_fs_exists(path) || co_json_read(&v, path, 1 << 22) != CO_OK)
        return false;
    json_t *message = json_object_get(v, "message");
    const char *text = json_is_object(message) ? co_json_str(message, "message") : json_string_value(message);
    if (text)
        snprintf(says, size, "%.*s", (int)strcspn(text, "\n"), text);
    json_decref(v);
    return text != NULL;
}
