/* machine.c -- measures the peak memory of this process's descendants with a thread that reads /proc, and
 * describes the CPU.
 *
 * It counts the proportional set size (PSS): a page shared by k processes counts 1/k in each, so the sum over
 * a tree of processes is what the tree occupies, with shared weights counted once. Reading the PSS takes a
 * lock in the measured process, so memory and speed are not measured in the same run. */
#include "bench/bench_int.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "proc/look.h"

enum { SAMPLE_MS = 20, DEEPEST = 4, CHILDREN_MOST = 1024 };

struct memory_watch {
    pthread_t thread;
    atomic_bool end;
    size_t peak;
};

static size_t pss_of(pid_t pid)
{
    char text[1024];

    co_proc_text(text, sizeof text, pid, "smaps_rollup");
    int64_t kib = co_proc_number(text, "Pss");
    return kib > 0 ? (size_t)kib * 1024 : 0;
}

/* The sum over all descendants of pid; a process that ends meanwhile counts 0. */
static size_t pss_below(pid_t pid, int depth)
{
    pid_t children[CHILDREN_MOST];
    size_t sum = 0;
    int n = depth < DEEPEST ? co_proc_children(children, CHILDREN_MOST, pid) : 0;

    for (int i = 0; i < n; i++)
        sum += pss_of(children[i]) + pss_below(children[i], depth + 1);
    return sum;
}

static void *sample_peak(void *arg)
{
    memory_watch *w = arg;

    while (!atomic_load(&w->end)) {
        size_t now = pss_below(getpid(), 0);
        w->peak = now > w->peak ? now : w->peak;
        nanosleep(&(struct timespec){.tv_nsec = SAMPLE_MS * 1000000L}, NULL);
    }
    return NULL;
}

co_err memory_watch_start(memory_watch **out)
{
    memory_watch *w = co_zalloc(sizeof *w);

    if (!w)
        return CO_ENOMEM;
    if (pthread_create(&w->thread, NULL, sample_peak, w) != 0) {
        co_free(w);
        return co_fail(CO_EFAIL, "measuring memory: cannot start a thread");
    }
    *out = w;
    return CO_OK;
}

size_t memory_watch_stop(memory_watch *w)
{
    if (!w)
        return 0;
    atomic_store(&w->end, true);
    pthread_join(w->thread, NULL);
    size_t peak = w->peak;
    co_free(w);
    return peak;
}

/* --- the CPU -------------------------------------------------------------------------------------------- */
void cpu_fact(const char *name, char *out, size_t size)
{
    char text[4096];
    FILE *f = fopen("/proc/cpuinfo", "re");

    out[0] = '\0';
    while (f && !out[0] && fgets(text, sizeof text, f)) {
        const char *colon = strchr(text, ':');
        text[strcspn(text, "\n")] = '\0';
        if (colon && strncmp(text, name, strlen(name)) == 0)
            snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (f)
        fclose(f);
}

json_t *cpu_vector_flags(void)
{
    char all[4096], *rest = NULL;
    json_t *out = json_array();

    cpu_fact("flags", all, sizeof all);
    for (char *one = strtok_r(all, " ", &rest); one; one = strtok_r(NULL, " ", &rest))
        if (strncmp(one, "avx", 3) == 0 || strncmp(one, "amx", 3) == 0 || strcmp(one, "fma") == 0)
            json_array_append_new(out, json_string(one));
    return out;
}
