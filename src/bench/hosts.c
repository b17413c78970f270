/* hosts.c -- what a second host costs: two hosts with one rank on one CPU each, TLS between them over loopback, against
 * one host with two ranks on the same two CPUs. The two alternate; the medians count. */
#include "bench/bench_int.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/net.h"

enum { TIMES = 5, WORDS = 24 };

static const char *const common[] = {"data=fake_images",
                                     "data.size=64",
                                     "model=resnet18",
                                     "optim=sgd",
                                     "trainer.max_steps=6",
                                     "trainer.max_epochs=1000",
                                     "trainer.threads=1",
                                     "trainer.verify_every=0",
                                     "console=quiet",
                                     "test=false",
                                     "trainer.eval_every=0",
                                     "callbacks.model_checkpoint.enabled=false",
                                     NULL};

static void stay_on(int cpu) /* -1: both */
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < 2; i++)
        if (cpu < 0 || cpu == i)
            CPU_SET(i, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "bench hosts: this process cannot be bound to a CPU: %m\n");
}

static int words_of(const char **words, const char *batch, const char *devices)
{
    int n = 0;

    for (; common[n]; n++)
        words[n] = common[n];
    words[n++] = batch;
    words[n++] = devices;
    words[n] = NULL;
    return n;
}

/* The second host, on the second CPU. */
static pid_t start_guest(const char *const *words, int n)
{
    const char *line[WORDS + 4] = {"cohort", "train"};
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    for (int i = 0; i < n; i++)
        line[2 + i] = words[i];
    line[2 + n] = "--node-rank=1";
    stay_on(1);
    if (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr))
        execv(self(), (char *const *)(uintptr_t)line);
    _exit(127);
}

static co_err two_hosts(trial *t, const char *root, const char **words, int n)
{
    char token[CO_TOKEN_TEXT], where[80];
    co_token made;
    int port, status;

    CO_TRY(co_token_make(&made));
    co_token_text(token, &made);
    setenv("COHORT_TOKEN", token, 1);
    CO_TRY(co_net_free_port(&port));
    snprintf(where, sizeof where, "--rdzv-endpoint=127.0.0.1:%d", port);
    words[n++] = "--nnodes=2";
    words[n++] = where;
    pid_t guest = start_guest(words, n);
    words[n++] = "--node-rank=0";
    words[n] = NULL;
    stay_on(0);
    co_err err = trial_once(t, root, words);
    stay_on(-1);
    waitpid(guest, &status, 0);
    return err;
}

static double of_first_host(const trial *t, const char *key)
{
    return json_number_value(json_object_get(json_array_get(json_object_get(t->summary, "hosts"), 0), key));
}

int bench_hosts(int argc, char **argv)
{
    const char *words[WORDS], *batch = "data.batch_size=256";
    double rate[2][TIMES], ratio[TIMES], sent = 0, planned = 0;
    char root[64], word[40];
    trial t;

    if (argc > 1) {
        snprintf(word, sizeof word, "data.batch_size=%.16s", argv[1]);
        batch = word;
    }
    co_err err = trial_folder(root);
    for (int i = 0; i < TIMES && !err; i++) {
        for (int arm = 0; arm < 2 && !err; arm++) {
            int n = words_of(words, batch, arm ? "trainer.devices=1" : "trainer.devices=2");
            err = arm ? two_hosts(&t, root, words, n) : trial_once(&t, root, words);
            rate[arm][i] = err ? 0 : trial_number(&t, "samples_per_s");
            if (!err && arm) {
                sent = of_first_host(&t, "sent_bytes") / trial_number(&t, "steps");
                planned = trial_number(&t, "planned_wire_bytes");
            }
            trial_free(&t);
        }
        ratio[i] = rate[1][i] / rate[0][i];
    }
    if (!err)
        printf(
            "{\"task\":\"hosts\",\"model\":\"resnet18 64x64\",\"batch\":%s,\"one_host_samples_per_s\":%.1f,"
            "\"two_hosts_samples_per_s\":%.1f,\"ratio\":%.3f,\"sent_bytes_a_step\":%.0f,"
            "\"planned_bytes_a_step\":%.0f}\n",
            batch + sizeof "data.batch_size", median(rate[0], TIMES), median(rate[1], TIMES),
            median(ratio, TIMES), sent, planned);
    return trial_ended(err, root);
}
