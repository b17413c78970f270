/* here.c -- what `cohort` without a command shows: CPUs, memory, GPUs, data sets, running and unfinished
 * runs. */
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

/* Finds data sets by the names of their files, in this folder, in data/ and in data/NAME. */
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
                {"train-images-idx3-ubyte", "mnist"},
                {"ml-latest-small", "movielens"},
                {"ratings.csv", "movielens"},
                {"ratings.dat", "movielens"},
                {"u.data", "movielens"}};
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

void show_here(void)
{
    co_live_run *live = NULL;
    int n = 0;

    show_machine();
    show_data();
    if (co_live_list(&live, &n) != CO_OK)
        co_errclear();
    for (int i = 0; i < n; i++)
        if (live[i].guest)
            printf("Running: part of a run whose record is on %s (%s ps)\n",
                   live[i].record_host[0] ? live[i].record_host : "another host", app_program());
        else if (live[i].launch[0])
            printf("Running: %s (%s stop %d)\n", live[i].launch, app_program(), live[i].pid);
        else
            printf("Running: %s (%s attach %d)\n", live[i].dir, app_program(), live[i].pid);
    char *open = unfinished_run(NULL, NULL);
    if (open)
        printf("Unfinished: %s (%s train ckpt_path=auto continues it)\n", open, app_program());
    co_free(open);
    co_free(live);
}
