/* test_util.c -- what the machine and a run's processes are seen to do, and GPUs through a library that
 * answers by rote. */
#include "track_test.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>

static bool has_run(void *start)
{
    return co_now_s() - *(double *)start > 0.3;
}

TEST(a_busy_child_with_much_memory_is_seen)
{
    static co_util u;
    co_sample before, after;
    double start;
    enum { MEMORY = 64 << 20 };
    int ready[2];
    char c;

    CHECK(pipe(ready) == 0, "pipe");
    CHECK(!co_util_look(&u, co_now_s(), &before), "the first look has nothing to compare with");
    pid_t child = fork();
    if (child == 0) {
        volatile char *p = malloc(MEMORY);
        for (size_t i = 0; p && i < MEMORY; i += 4096)
            p[i] = 1;
        (void)!write(ready[1], "k", 1);
        for (;;)
            ;
    }
    CHECK(read(ready[0], &c, 1) == 1, "child");
    start = co_now_s();
    test_until(has_run, &start, 10, "0.3 s");
    CHECK(co_util_look(&u, co_now_s(), &after), "second look");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(after.memory_mb > before.memory_mb + 60 && after.memory_mb < before.memory_mb + 200,
          "%g MB, then %g", before.memory_mb, after.memory_mb);
    CHECK(after.run_cpu_percent > 3 && after.run_cpu_percent < 250, "%g %%", after.run_cpu_percent);
    CHECK(after.cpu_percent > 0 && after.cpu_percent <= 100.001, "%g %%", after.cpu_percent);
    CHECK(after.host_memory_percent > 0 && after.host_memory_percent < 100 && after.load >= 0, "host");
}

static const char library[] =
    "int nvmlInit_v2(void) { return 0; }\n"
    "int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }\n"
    "int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { static int g[2]; *d = g + i; return 0; }\n"
    "int nvmlDeviceGetName(void *d, char *t, unsigned n) { if (n) t[0] = 'G', t[1] = 0; return 0; }\n"
    "int nvmlDeviceGetUtilizationRates(void *d, unsigned *u) { u[0] = 37; u[1] = 5; return 0; }\n"
    "int nvmlDeviceGetMemoryInfo(void *d, unsigned long long *m)\n"
    "{ m[0] = 24000000000; m[1] = 23000000000; m[2] = 1000000000; return 0; }\n"
    "int nvmlSystemGetDriverVersion(char *t, unsigned n) { if (n > 4) t[0] = '5', t[1] = '5', t[2] = 0; "
    "return 0; }\n"
    "int nvmlDeviceGetTemperature(void *d, int k, unsigned *c) { *c = 43; return 0; }\n"
    "int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 61500; return 0; }\n"
    "int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw) { *mw = 300000; return 0; }\n"
    "int nvmlDeviceGetFanSpeed(void *d, unsigned *p) { return 3; }\n" /* a card without a fan */
    "struct p { unsigned pid; unsigned long long used; unsigned a, b; };\n"
    "int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct p *p)\n"
    "{ if (*n < 1) return 7; *n = 1; p[0].pid = 1; p[0].used = 1073741824; return 0; }\n";

TEST(gpus_are_columns_where_the_library_is_and_nothing_where_it_is_not)
{
    CHECK_OK(co_fs_write_atomic("nvml.c", library, sizeof library - 1));
    test_run r = test_sh("cc -shared -fPIC -o libnvidia-ml.so.1 nvml.c");
    if (r.status != 0)
        test_skip("no compiler to make a library with: %s", r.out);
    free(r.out);
    const char *line =
        "$COHORT train data=digits model=mlp trainer.max_epochs=4000 trainer.max_time=2s run.dir=%s "
        "callbacks.model_checkpoint.enabled=false console=quiet trainer.eval_every=0";
    char with[512];
    snprintf(with, sizeof with, line, "with");
    r = test_sh(
        "LD_LIBRARY_PATH=. %s; grep -c system/gpu.1.percent with/events.jsonl; cat with/summary.json; "
        "LD_LIBRARY_PATH=. $COHORT | grep GPU",
        with);
    CHECK(test_contains(r.out, "\"gpu.1.percent\": {\n      \"mean\": 37.0") &&
              test_contains(r.out, "gpu.0.memory_mb"),
          "%s", r.out);
    CHECK(test_contains(r.out, "GPU 0 G, 24 GB, GPU 1 G, 24 GB"), "%s", r.out);
    CHECK(test_contains(r.out, "\"gpu.0.power_w\": {\n      \"mean\": 61.5") &&
              test_contains(r.out, "gpu.1.temperature_c"),
          "%s", r.out);
    free(r.out);
    /* At the beginning and at the end: each card with its figures, its fan absent, and the process on it. */
    r = test_sh("grep -c 'driver 55$' with/gpus.txt; grep -c '^  1  G  .*  -  *43 C *62 W / 300 W *954 / "
                "22888 *37 %%$' "
                "with/gpus.txt; grep -c '^  0  *1  *[^ ]*  *1024$' with/gpus.txt");
    CHECK(strcmp(r.out, "2\n2\n2\n") == 0, "%s", r.out);
    free(r.out);
    CHECK(co_gpus() == 0 || !co_fs_exists("/dev/nvidiactl"), "GPUs where there are none");
}
