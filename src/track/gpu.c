/* gpu.c -- what the GPUs of this machine are doing, if there are any and NVIDIA's library is here to ask.
 *
 * libnvidia-ml.so.1 comes with the driver and is loaded when it is first needed. Without it the machine
 * counts as having no GPUs. All of its functions that we call are in one table; a driver that lacks one of
 * them counts as absent. Not tried on a GPU: the tests use a library of the same name that gives fixed
 * answers. */
#include "track/track_int.h"

#include <string.h>

#include "base/library.h"

typedef struct utilisation {
    unsigned gpu, memory; /* percent of the last second */
} utilisation;
typedef struct memory_info {
    unsigned long long total, free, used;
} memory_info;

static struct {
    int (*init)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned i, void **device);
    int (*name)(void *device, char *text, unsigned len);
    int (*rates)(void *device, utilisation *u);
    int (*memory)(void *device, memory_info *m);
} nvml;

static bool load(void)
{
    static const co_symbol table[] = {{"nvmlInit_v2", &nvml.init},
                                      {"nvmlDeviceGetCount_v2", &nvml.count},
                                      {"nvmlDeviceGetHandleByIndex_v2", &nvml.handle},
                                      {"nvmlDeviceGetName", &nvml.name},
                                      {"nvmlDeviceGetUtilizationRates", &nvml.rates},
                                      {"nvmlDeviceGetMemoryInfo", &nvml.memory}};

    return co_library_load("libnvidia-ml.so.1", CO_LIBRARY_LOCAL, table, CO_COUNT(table), NULL) &&
           nvml.init() == 0;
}

int co_gpus(void)
{
    static int known = -1;
    unsigned n = 0;

    if (known < 0)
        known = load() && nvml.count(&n) == 0 && n <= CO_MAX_GPUS ? (int)n : 0;
    return known;
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
    out->percent = nvml.rates(device, &u) == 0 ? (double)u.gpu : -1; /* not told of a part of a GPU */
    out->memory_mb = (double)m.used / 1e6;
    out->total_mb = (double)m.total / 1e6;
    return true;
}
