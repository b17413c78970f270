/* pair.c -- two hosts on one machine, for the benches that compare what two hosts do with something else. */
#include "bench/bench_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/net.h"

static const char *const common[] = {"data=fake_images",
                                     "data.size=64",
                                     "model=resnet18",
                                     "optim=sgd",
                                     "trainer.max_epochs=1000",
                                     "trainer.threads=1",
                                     "trainer.verify_every=0",
                                     "console=quiet",
                                     "test=false",
                                     "trainer.eval_every=0",
                                     "callbacks.model_checkpoint.enabled=false",
                                     NULL};

/* --- where they run ------------------------------------------------------------------------------------- */
/* The first two CPUs that this process may use; one CPU for both if there is no other. */
static void choose_cpus(pair *p)
{
    int n = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
        if (CPU_ISSET(cpu, &p->all))
            p->cpu[n++] = cpu;
    if (n == 1) {
        p->cpu[1] = p->cpu[0];
        co_notice("this process has one CPU: both hosts share it");
    }
}

co_err pair_open(pair *p, bool lan, int mbit)
{
    *p = (pair){.home = -1, .hub = -1, .netns = {-1, -1}, .address = {"127.0.0.1", "127.0.0.1"}, .device = "lo"};
    if (sched_getaffinity(0, sizeof p->all, &p->all) != 0)
        return co_fail(CO_EIO, "sched_getaffinity: %m");
    choose_cpus(p);
    if (!lan && !mbit)
        return CO_OK;
    p->address[0] = "10.77.0.1";
    p->address[1] = "10.77.0.2";
    p->device = "eth0";
    p->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (p->home < 0)
        return co_fail(CO_EIO, "open /proc/self/ns/net: %m");
    return lan_make(p->home, p->netns, &p->hub, mbit, p->address, p->device);
}

void pair_close(pair *p)
{
    for (int h = 0; h < 2; h++)
        if (p->netns[h] >= 0)
            close(p->netns[h]);
    if (p->hub >= 0)
        close(p->hub);
    if (p->home >= 0)
        close(p->home);
}

co_err pair_enter(const pair *p, int host)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(p->cpu[host], &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return co_fail(CO_EIO, "bind this process to CPU %d: %m", p->cpu[host]);
    if (p->netns[host] >= 0 && setns(p->netns[host], CLONE_NEWNET) != 0)
        return co_fail(CO_EIO, "enter a network namespace: %m");
    return CO_OK;
}

void pair_leave(const pair *p)
{
    if (p->home >= 0)
        CO_ASSERT(setns(p->home, CLONE_NEWNET) == 0, "who could leave its namespace can come back");
    sched_setaffinity(0, sizeof p->all, &p->all);
}

/* --- a training ----------------------------------------------------------------------------------------- */
int pair_words(const char *words[PAIR_WORDS], const char *batch, const char *steps, const char *devices)
{
    int n = 0;

    for (; common[n]; n++)
        words[n] = common[n];
    words[n++] = batch;
    words[n++] = steps;
    words[n++] = devices;
    words[n] = NULL;
    return n;
}

/* The second host; its output goes to ROOT/guest.log. */
static pid_t start_guest(const pair *p, const char *root, const char *const *words, int n)
{
    const char *line[PAIR_WORDS + 4] = {"cohort", "train"};
    char log[96];

    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    memcpy(line + 2, words, (size_t)n * sizeof *line);
    line[2 + n] = "--node-rank=1";
    snprintf(log, sizeof log, "%s/guest.log", root);
    if (pair_enter(p, 1) == CO_OK && freopen(log, "a", stdout) && freopen(log, "a", stderr))
        execv(self(), (char *const *)(uintptr_t)line);
    _exit(127);
}

co_err pair_train(trial *t, const pair *p, const char *root, const char **words, int n)
{
    char token[CO_TOKEN_TEXT], where[80];
    co_token made;
    int port, status = 0;

    CO_ASSERT(n + 4 <= PAIR_WORDS, "there is room for four more words");
    *t = (trial){0};
    CO_TRY(co_token_make(&made));
    co_token_text(token, &made);
    setenv("COHORT_TOKEN", token, 1);
    CO_TRY(co_net_free_port(&port));
    snprintf(where, sizeof where, "--rdzv-endpoint=%s:%d", p->address[0], port);
    words[n++] = "--nnodes=2";
    words[n++] = where;
    pid_t guest = start_guest(p, root, words, n);
    if (guest < 0)
        return co_fail(CO_EIO, "fork: %m");
    words[n++] = "--node-rank=0";
    words[n] = NULL;
    co_err err = pair_enter(p, 0);
    if (!err)
        err = trial_once(t, root, words);
    pair_leave(p);
    waitpid(guest, &status, 0);
    if (!err && status != 0)
        err = co_fail(CO_EFAIL, "the second host ended with exit status %d, see %s/guest.log",
                      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), root);
    return err;
}

double pair_figure(const trial *t, int host, const char *key)
{
    const json_t *hosts = json_object_get(t->summary, "hosts");

    return json_number_value(json_object_get(json_array_get(hosts, (size_t)host), key));
}
