/* What supervisors cost while nothing happens. */
#include "hosts.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>

/* CPU seconds of a process's threads so far; 0 where the kernel does not say. */
static double cpu_of(pid_t pid)
{
    char path[512];
    double ns = 0, one;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)pid, e->d_name);
        FILE *f = *e->d_name != '.' ? fopen(path, "re") : NULL;
        if (f && fscanf(f, "%lf", &one) == 1)
            ns += one;
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return ns * 1e-9;
}

/* The guard of a worker is its parent. */
static pid_t parent_of(pid_t pid)
{
    test_run r = test_sh("ps -o ppid= -p %d", (int)pid);
    pid_t parent = (pid_t)atoi(r.out);

    free(r.out);
    return parent;
}

TEST(idle_supervisors_use_under_a_hundredth_of_a_core)
{
    ns_lan lan = ns_open(2);
    pid_t pid[4];
    double cpu[4], began;

    two_running(&lan, pid);
    pid[2] = parent_of((pid_t)atoi(output_of("began0")));
    pid[3] = parent_of((pid_t)atoi(output_of("began1")));
    for (int i = 0; i < 4; i++)
        cpu[i] = cpu_of(pid[i]);
    if (cpu[0] <= 0)
        test_skip("this kernel has no /proc/PID/task/TID/schedstat");
    began = co_now_s();
    poll(NULL, 0, 5000);
    double took = co_now_s() - began;
    for (int i = 0; i < 4; i++) {
        double share = (cpu_of(pid[i]) - cpu[i]) / took;
        test_note("%s of host %d over %.1f s: %.3f %% of a core", i < 2 ? "supervisor" : "guard", i % 2, took,
                  share * 100);
        CHECK(share < 0.01, "%.2f %% of a core", share * 100);
    }
    kill(pid[0], SIGTERM);
    CHECK(test_wait(pid[0], 20) == 75 && test_wait(pid[1], 20) == 75, "%s", output(0));
}
