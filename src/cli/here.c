/* here.c -- what `cohort` alone finds where it is called: CPUs, memory, GPUs, data sets, runs that go on and runs that
 * can. */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "comm/arena.h"
#include "proc/crew.h"

static void show_machine(void)
{
    int cpus = co_cpus_usable();
    co_gpu g;

    printf("Here: %d CPU%s and %.1f GiB of memory that this process may use", cpus, cpus == 1 ? "" : "s",
           (double)co_memory_available() / (1 << 30));
    for (int i = 0; i < co_gpus(); i++)
        if (co_gpu_look(i, &g))
            printf("%s GPU %d %s, %.0f GB", i ? "," : "; not used:", i, g.name, g.total_mb / 1000);
    printf(".\n");
}

/* A file or folder by which a data set is known, in this folder, in data/ or in data/NAME. */
static void show_data(void)
{
    static const struct {
        const char *mark, *name;
    } sets[] = {{"cifar-10-batches-bin", "cifar10"},
                {"cifar-10-binary.tar.gz", "cifar10"},
                {"data_batch_1.bin", "cifar10"},
                {"data_batch_1.bin.xz", "cifar10"},
                {"cifar-100-binary", "cifar100"},
                {"cifar-100-binary.tar.gz", "cifar100"},
                {"MNIST/raw", "mnist"},
                {"train-images-idx3-ubyte.gz", "mnist"},
                {"train-images-idx3-ubyte", "mnist"}};
    const char *told = "";

    for (size_t i = 0; i < CO_COUNT(sets); i++) {
        char below[64];
        snprintf(below, sizeof below, "data/%s", sets[i].name);
        const char *dirs[] = {".", "data", below};
        for (size_t d = 0; d < CO_COUNT(dirs); d++)
            if (strcmp(told, sets[i].name) != 0 && has(dirs[d], sets[i].mark)) {
                printf("Data: %s train data=%s data.dir=%s ...\n", app_program(), sets[i].name, dirs[d]);
                told = sets[i].name;
            }
    }
}

/* Stopped or killed, with something to continue from, and nobody at it. */
static bool is_open(const char *dir, const co_live_run *live, int n)
{
    char *path = co_sprintf("%s/summary.json", dir);
    json_t *v = NULL;
    bool yes = path && has(dir, "header.json") && has(dir, "checkpoints/last") && !live_find(live, n, dir);
    const char *status = yes && co_fs_exists(path) && co_json_read(&v, path, 1 << 20) == CO_OK
                             ? co_json_str(v, "status")
                             : NULL;

    yes = yes && (!status || strcmp(status, "done") != 0);
    json_decref(v);
    co_free(path);
    co_errclear();
    return yes;
}

/* The newest unfinished run of any task below logs/. */
static void show_unfinished(const co_live_run *live, int n)
{
    char **tasks = NULL, **runs = NULL, best[256] = "", *found = NULL;
    size_t n_tasks = 0, n_runs = 0;

    if (co_fs_is_dir("logs") && co_fs_list(&tasks, &n_tasks, "logs") == CO_OK)
        for (size_t t = 0; t < n_tasks; t++) {
            char *root = co_sprintf("logs/%s/runs", tasks[t]);
            if (root && co_fs_is_dir(root) && co_fs_list(&runs, &n_runs, root) == CO_OK) {
                for (size_t i = n_runs; i-- > 0 && strcmp(runs[i], best) > 0;) {
                    char *dir = co_sprintf("%s/%s", root, runs[i]);
                    if (dir && is_open(dir, live, n)) {
                        snprintf(best, sizeof best, "%s", runs[i]); /* a date: the greatest is the newest */
                        co_free(found);
                        found = dir;
                        break;
                    }
                    co_free(dir);
                }
                co_fs_list_free(runs, n_runs);
            }
            co_free(root);
        }
    co_fs_list_free(tasks, n_tasks);
    co_errclear();
    if (found)
        printf("Unfinished: %s (%s train run.dir=%s ckpt_path=auto)\n", found, app_program(), found);
    co_free(found);
}

void show_here(void)
{
    co_live_run *live = NULL;
    int n = 0;

    show_machine();
    show_data();
    if (co_live_list(&live, &n) != CO_OK)
        co_errclear();
    for (int i = 0; i < n; i++)
        printf("Running: %s (%s attach %d)\n", live[i].dir, app_program(), live[i].pid);
    show_unfinished(live, n);
    co_free(live);
    printf("Programs of any kind, on any number of hosts: %s launch --help\n", app_program());
}
