/* `cohort train` on three hosts, which are processes of this machine, that meet through a real etcd with
 * three members: its leader is killed, then the host that keeps the roster and writes the record. */
#include "roster/etcds.h"

#define TRAINING                                                                                             \
    "data=digits model=cnn trainer.slices=16 trainer.devices=1 trainer.threads=1 trainer.max_epochs=16"

enum { HOSTS = 3 };

static pid_t train(const etcds *e, int i)
{
    char out[16];

    snprintf(out, sizeof out, "out%d", i);
    return test_spawn(out,
                      "mkdir -p host%d && cd host%d && %s exec %s train --nnodes=1:3 --rdzv-backend=etcd-v3"
                      " --rdzv-id=run --rdzv-endpoint=%s --rdzv-conf=last_call_timeout=30,lease=2"
                      " run.dir=r " TRAINING,
                      i, i, token_env(), test_cohort(), e->members);
}

typedef struct host_says {
    int host;
    const char *words;
} host_says;

static bool does_say(void *what)
{
    const host_says *h = what;
    char path[16];

    snprintf(path, sizeof path, "out%d", h->host);
    return access(path, F_OK) == 0 && strstr(output(h->host), h->words);
}

static void until_says(int host, const char *words)
{
    host_says what = {host, words};

    test_until(does_say, &what, 40, words);
}

static int folders(void)
{
    test_run r = test_sh("ls -d host*/r 2> /dev/null | wc -l");
    int n = atoi(r.out);

    free(r.out);
    return n;
}

TEST_LONG_WITHIN(a_training_outlives_the_leader_of_etcd_and_the_host_that_keeps_the_roster, 150)
{
    etcds e;
    pid_t pid[HOSTS];

    etcds_open(&e, 3, "127.0.0.1");
    for (int i = 0; i < HOSTS; i++) {
        pid[i] = train(&e, i);
        if (i == 0)
            until_says(0, "find this one (port ");
    }
    until_says(0, "epoch 2/16");
    CHECK(folders() == 1 && strstr(output(0), "run       r") && !strstr(output(0), "guest "),
          "%d hosts write: %s", folders(), output(0));
    etcds_kill(&e, etcds_leader(&e));
    test_until(etcds_healthy, &e, 20, "another leader of etcd");
    until_says(0, "epoch 6/16");
    CHECK(!strstr(output(0), "view 2"), "a change of view: %s", output(0));
    kill(pid[0], SIGKILL);
    test_wait(pid[0], 5);
    for (int i = 1; i < HOSTS; i++)
        CHECK(test_wait(pid[i], 60) == 0, "host %d: %s", i, output(i));
    test_run r = test_sh("%s train run.dir=one " TRAINING " > one.out 2>&1;"
                         " cat one/summary.json host[12]/r/summary.json | grep -h weights_sha256 | sort -u;"
                         " ls -d host[12]/r",
                         test_cohort());
    char *line = strchr(r.out, '\n');
    CHECK(line && strchr(line + 1, '\n') && !strchr(strchr(line + 1, '\n') + 1, '\n'),
          "one hash and one folder: %s\n%s\n%s", r.out, output(1), output(2));
    const char *hash = strchr(r.out, ':');
    char first[17] = "";
    CHECK(hash && sscanf(hash, ": \"%16[0-9a-f]", first) == 1, "no hash: %s", r.out);
    for (int i = 1; i < HOSTS; i++)
        CHECK(strstr(output(i), first), "host %d has other weights than %s: %s", i, first, output(i));
    free(r.out);
    etcds_close(&e);
}
