/* process.c -- does the process that wrote a file still run, or has another one got its pid? */
#include "track/track_int.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "proc/look.h"

/* Start time of a process; 0 if it is gone or a zombie. */
static long long start_of(long long pid)
{
    co_proc p;

    if (pid > INT_MAX || !co_proc_read(&p, (pid_t)pid) || strchr("ZXx", p.state))
        return 0;
    return (long long)p.started;
}

/* The first line of a small file; "" if it cannot be read. */
static void read_line(char *out, size_t size, const char *path)
{
    FILE *f = fopen(path, "re");

    if (!f || !fgets(out, (int)size, f))
        *out = '\0';
    if (f)
        fclose(f);
    out[strcspn(out, "\n")] = '\0';
}

void process_self(process_id *out)
{
    memset(out, 0, sizeof *out);
    gethostname(out->host, sizeof out->host - 1);
    read_line(out->boot, sizeof out->boot, "/proc/sys/kernel/random/boot_id");
    read_line(out->machine, sizeof out->machine, "/etc/machine-id");
    ssize_t n = readlink("/proc/self/ns/pid", out->pid_ns, sizeof out->pid_ns - 1);
    out->pid_ns[n > 0 ? n : 0] = '\0';
    out->pid = getpid();
    out->start = start_of(out->pid);
}

process_state process_look(const process_id *p)
{
    process_id me;
    process_self(&me);
    bool same_host = strcmp(me.host, p->host) == 0;
    bool same_kernel = *me.boot ? strcmp(me.boot, p->boot) == 0 : same_host;
    if (same_kernel && strcmp(me.pid_ns, p->pid_ns) == 0)
        return start_of(p->pid) == p->start ? PROCESS_ALIVE : PROCESS_DEAD;
    if (!same_kernel && same_host && *me.machine && strcmp(me.machine, p->machine) == 0)
        return PROCESS_DEAD; /* this host has rebooted since */
    return PROCESS_ELSEWHERE;
}

json_t *process_to_json(const process_id *p)
{
    return json_pack("{s:s, s:I, s:I, s:s, s:s, s:s}", "host", p->host, "pid", (json_int_t)p->pid, "start",
                     (json_int_t)p->start, "boot", p->boot, "machine", p->machine, "pid_ns", p->pid_ns);
}

bool process_from_json(process_id *out, const json_t *v)
{
    const char *host = co_json_str(v, "host"), *boot = co_json_str(v, "boot"), *ns = co_json_str(v, "pid_ns"),
               *machine = co_json_str(v, "machine");
    memset(out, 0, sizeof *out);
    if (!host || !boot || !ns || !machine || !co_json_i64(v, "pid", &out->pid) ||
        !co_json_i64(v, "start", &out->start))
        return false;
    return out->pid > 0 && out->start > 0 &&
           snprintf(out->host, sizeof out->host, "%s", host) < (int)sizeof out->host &&
           snprintf(out->boot, sizeof out->boot, "%s", boot) < (int)sizeof out->boot &&
           snprintf(out->machine, sizeof out->machine, "%s", machine) < (int)sizeof out->machine &&
           snprintf(out->pid_ns, sizeof out->pid_ns, "%s", ns) < (int)sizeof out->pid_ns;
}
