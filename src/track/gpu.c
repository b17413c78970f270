/* gpu.c -- what the GPUs of this machine are doing, if there are any and NVIDIA's library is here to ask.
 *
 * libnvidia-ml.so.1 (NVML) comes with the driver and is loaded when it is first needed. Without it the
 * machine counts as having no GPUs. All of its functions that we call are in two tables: a driver that
 * lacks one of the first counts as absent; one that lacks one of the second does not tell that figure. Not
 * tried on a GPU: the tests use a library of the same name that gives fixed answers. */
#include "track/track_int.h"

#include <math.h>
#include <string.h>

#include "base/library.h"

typedef struct utilisation {
    unsigned gpu, memory; /* percent of the last second */
} utilisation;
typedef struct memory_info {
    unsigned long long total, free, used;
} memory_info;
typedef struct process_info {
    unsigned pid;
    unsigned long long used; /* ULLONG_MAX: not known */
    unsigned gpu_instance, compute_instance;
} process_info;
enum { GPU_SENSOR = 0 };

static struct {
    int (*init)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned i, void **device);
    int (*name)(void *device, char *text, unsigned len);
    int (*rates)(void *device, utilisation *u);
    int (*memory)(void *device, memory_info *m);
} nvml;

/* NULL: the driver does not have it. */
static struct {
    int (*driver)(char *text, unsigned len);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*power)(void *device, unsigned *milliwatts);
    int (*power_limit)(void *device, unsigned *milliwatts);
    int (*fan)(void *device, unsigned *percent);
    int (*processes)(void *device, unsigned *n, process_info *out);
} more;

static const char library_file[] = "libnvidia-ml.so.1";

static void load_more(void)
{
    static const co_symbol table[] = {{"nvmlSystemGetDriverVersion", &more.driver},
                                      {"nvmlDeviceGetTemperature", &more.temperature},
                                      {"nvmlDeviceGetPowerUsage", &more.power},
                                      {"nvmlDeviceGetEnforcedPowerLimit", &more.power_limit},
                                      {"nvmlDeviceGetFanSpeed", &more.fan},
                                      {"nvmlDeviceGetComputeRunningProcesses_v3", &more.processes}};

    for (size_t i = 0; i < CO_COUNT(table); i++)
        (void)co_library_load(library_file, CO_LIBRARY_LOCAL, &table[i], 1, NULL);
}

static bool load(void)
{
    static const co_symbol table[] = {{"nvmlInit_v2", &nvml.init},
                                      {"nvmlDeviceGetCount_v2", &nvml.count},
                                      {"nvmlDeviceGetHandleByIndex_v2", &nvml.handle},
                                      {"nvmlDeviceGetName", &nvml.name},
                                      {"nvmlDeviceGetUtilizationRates", &nvml.rates},
                                      {"nvmlDeviceGetMemoryInfo", &nvml.memory}};

    if (!co_library_load(library_file, CO_LIBRARY_LOCAL, table, CO_COUNT(table), NULL) || nvml.init() != 0)
        return false;
    load_more();
    return true;
}

int co_gpus(void)
{
    static int known = -1;
    unsigned n = 0;

    if (known < 0)
        known = load() && nvml.count(&n) == 0 && n <= CO_MAX_GPUS ? (int)n : 0;
    return known;
}

void gpu_driver(char *out, size_t size)
{
    if (co_gpus() == 0 || !more.driver || more.driver(out, (unsigned)size) != 0)
        out[0] = '\0';
    out[size - 1] = '\0';
}

/* A figure that the driver does not have, does not support or refuses is nan. */
static double figure(int (*get)(void *device, unsigned *out), void *device, double scale)
{
    unsigned value = 0;

    return get && get(device, &value) == 0 ? scale * value : NAN;
}

static double temperature(void *device)
{
    unsigned value = 0;

    return more.temperature && more.temperature(device, GPU_SENSOR, &value) == 0 ? (double)value : NAN;
}

static void list_processes(void *device, co_gpu *out)
{
    process_info all[CO_GPU_PROCESSES];
    unsigned n = CO_GPU_PROCESSES;

    if (!more.processes || more.processes(device, &n, all) != 0 || n > CO_GPU_PROCESSES)
        return;
    for (unsigned i = 0; i < n; i++) {
        out->process[i].pid = all[i].pid;
        out->process[i].memory_mb = all[i].used == ~0ull ? NAN : (double)all[i].used / 1e6;
    }
    out->processes = (int)n;
}

bool co_gpu_look(int i, co_gpu *out)
{
    void *device;
    utilisation u = {0};
    memory_info m = {0};

    memset(out, 0, sizeof *out);
    if (i < 0 || i >= co_gpus() || nvml.handle((unsigned)i, &device) != 0 || nvml.memory(device, &m) != 0)
        return false;
    if (nvml.name(device, out->name, sizeof out->name) != 0)
        out->name[0] = '\0';
    out->name[sizeof out->name - 1] = '\0';
    out->percent = nvml.rates(device, &u) == 0 ? (double)u.gpu : NAN; /* parts of a GPU have none */
    out->memory_mb = (double)m.used / 1e6;
    out->total_mb = (double)m.total / 1e6;
    out->temperature_c = temperature(device);
    out->power_w = figure(more.power, device, 1e-3);
    out->power_limit_w = figure(more.power_limit, device, 1e-3);
    out->fan_percent = figure(more.fan, device, 1);
    list_processes(device, out);
    return true;
}
