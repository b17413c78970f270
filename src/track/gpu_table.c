/* gpu_table.c -- the GPUs of this machine as a table like that of nvidia-smi:
 *
 *     Tue Nov 17 13:40:00 2026    driver 550.54
 *     GPU  name                    fan  temp    power / limit       memory (MiB)   util
 *       0  NVIDIA A100-SXM4-40GB     -  43 C    61 W / 400 W      1034 / 40960     37 %
 *
 *     GPU      pid  program          memory (MiB)
 *       0     4711  python                   1034
 *
 * A figure that the driver does not tell is "-". */
#include "track/track_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "proc/look.h"

#define MIB 1.048576 /* in 1e6 bytes */

static const char *number(char out[24], double x, const char *unit)
{
    if (isnan(x))
        snprintf(out, 24, "-");
    else
        snprintf(out, 24, "%.0f%s", x, unit);
    return out;
}

static void add_gpu(co_str *out, int i, const co_gpu *g)
{
    char fan[24], temp[24], power[24], limit[24], used[24], total[24], busy[24];

    co_str_addf(out, "%3d  %-28.28s  %5s  %5s  %6s / %-6s  %8s / %-8s  %5s\n", i, g->name,
                number(fan, g->fan_percent, " %"), number(temp, g->temperature_c, " C"),
                number(power, g->power_w, " W"), number(limit, g->power_limit_w, " W"),
                number(used, g->memory_mb / MIB, ""), number(total, g->total_mb / MIB, ""),
                number(busy, g->percent, " %"));
}

static void add_processes(co_str *out, int i, const co_gpu *g)
{
    char program[64], used[24];

    for (int k = 0; k < g->processes; k++) {
        if (!co_proc_text(program, sizeof program, (pid_t)g->process[k].pid, "comm"))
            snprintf(program, sizeof program, "-"); /* of another container */
        program[strcspn(program, "\n")] = '\0';
        co_str_addf(out, "%3d  %10u  %-16.16s  %12s\n", i, g->process[k].pid, program,
                    number(used, g->process[k].memory_mb / MIB, ""));
    }
}

bool co_gpu_table(co_str *out)
{
    co_gpu g;
    char date[40], driver[80];

    if (co_gpus() == 0)
        return false;
    co_date(date, sizeof date, "%a %b %e %H:%M:%S %Y", co_wall_s());
    gpu_driver(driver, sizeof driver);
    co_str_addf(out, "%s    driver %s\n", date, driver[0] ? driver : "-");
    co_str_addf(out, "GPU  %-28s  %5s  %5s  %6s / %-6s  %8s / %-8s  %5s\n", "name", "fan", "temp", "power",
                "limit", "MiB used", "total", "util");
    for (int i = 0; i < co_gpus(); i++)
        if (co_gpu_look(i, &g))
            add_gpu(out, i, &g);
    co_str_addf(out, "\nGPU  %10s  %-16s  %12s\n", "pid", "program", "MiB used");
    for (int i = 0; i < co_gpus(); i++)
        if (co_gpu_look(i, &g))
            add_processes(out, i, &g);
    return true;
}
