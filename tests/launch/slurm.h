/* slurm.h -- a real Slurm in the test's folder: a controller, two nodes on this machine, a munge daemon of
 * their own.
 *
 *     slurm_up();      // skips the test without Slurm
 *     ...              // sbatch, srun, scancel: SLURM_CONF is set
 *     slurm_down();
 */
#ifndef TESTS_LAUNCH_SLURM_H
#define TESTS_LAUNCH_SLURM_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness.h"
#include "net/net.h"

static pid_t daemons[4];
static const char *const programs[] = {"munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel"};

static inline int free_port(void)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    return port;
}

static inline void write_conf(const char *dir)
{
    int port[3];
    FILE *f = fopen("slurm.conf", "w");

    do
        for (int i = 0; i < 3; i++)
            port[i] = free_port();
    while (port[0] == port[1] || port[1] == port[2] || port[0] == port[2]);
    CHECK(f, "slurm.conf");
    fprintf(f,
            "ClusterName=lab\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=%d\nSlurmUser="
            "root\nSlurmdUser=root\n"
            "AuthType=auth/munge\nAuthInfo=socket=%s/munge.sock,cred_expire=5\nCredType=cred/"
            "munge\nMpiDefault=none\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n"
            "JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n"
            "SelectType=select/linear\nSchedulerType=sched/backfill\nReturnToService=2\nKillWait=5\n"
            "StateSaveLocation=%s/state\nSlurmdSpoolDir=%s/spool.%%n\nTmpFS=%s/tmp.%%n\n"
            "SlurmctldPidFile=%s/ctl.pid\nSlurmdPidFile=%s/slurmd.%%n.pid\nSlurmctldLogFile=%s/ctl.log\n"
            "SlurmdLogFile=%s/slurmd.%%n.log\nSlurmdParameters=config_overrides\n",
            port[0], dir, dir, dir, dir, dir, dir, dir, dir);
    for (int i = 1; i <= 2; i++)
        fprintf(f, "NodeName=node%d NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=2 RealMemory=1000\n",
                i, port[i]);
    fprintf(
        f,
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nJobRequeue=1\n"
        "SlurmctldParameters=preempt_send_user_signal\n"
        "PartitionName=all Nodes=ALL Default=YES PriorityTier=1 GraceTime=20 PreemptMode=REQUEUE State=UP\n"
        "PartitionName=urgent Nodes=ALL PriorityTier=10 State=UP\n");
    fclose(f);
}

static inline bool both_idle(void *unused)
{
    test_run r = test_sh("sinfo -h -N -p all -o %%T 2>/dev/null | grep -c idle");
    bool are = atoi(r.out) == 2;

    free(r.out);
    return are;
}

static inline bool answers(void *path)
{
    return access(path, F_OK) == 0;
}

/* The workers are scripts, so that nothing has to be quoted for srun. */
static inline void script(const char *name, const char *text)
{
    CHECK_OK(co_fs_write_atomic(name, text, strlen(text)));
    CHECK(test_sh("chmod +x %s", name).status == 0, "chmod %s", name);
}

static inline void slurm_up(void)
{
    char dir[1024], conf[1100], path[4096];

    snprintf(path, sizeof path, "%s:/usr/sbin:/sbin", getenv("PATH"));
    setenv("PATH", path, 1);
    for (size_t i = 0; i < CO_COUNT(programs); i++)
        if (test_sh("command -v %s", programs[i]).status != 0)
            test_skip("no %s here (packages munge, slurmctld, slurmd, slurm-client)", programs[i]);
    if (geteuid() != 0)
        test_skip("slurmd needs root");
    test_may_leak();
    CHECK(getcwd(dir, sizeof dir), "getcwd");
    if (strlen(dir) > 80)
        test_skip("the path of munge's socket would be too long: %s", dir);
    CHECK(test_sh("mkdir state spool.node1 spool.node2 tmp.node1 tmp.node2 && umask 077 &&"
                  " head -c 1024 /dev/urandom > munge.key")
                  .status == 0,
          "folders");
    write_conf(dir);
    snprintf(conf, sizeof conf, "%s/slurm.conf", dir);
    setenv("SLURM_CONF", conf, 1);
    setenv("TMPDIR", dir, 1);
    daemons[0] =
        test_spawn("munged.out",
                   "exec munged -F -f -S %s/munge.sock --key-file=%s/munge.key --pid-file=%s/munged.pid"
                   " --log-file=%s/munged.log --seed-file=%s/munged.seed",
                   dir, dir, dir, dir, dir);
    test_until(answers, "munge.sock", 10, "munged");
    daemons[1] = test_spawn("ctl.out", "exec slurmctld -D");
    daemons[2] = test_spawn("node1.out", "exec slurmd -N node1 -D");
    daemons[3] = test_spawn("node2.out", "exec slurmd -N node2 -D");
    test_until(both_idle, NULL, 30, "two nodes");
}

static inline void slurm_down(void)
{
    free(test_sh("scancel -u root --full -s KILL 2>/dev/null; scancel -u root 2>/dev/null").out);
    for (int i = 3; i >= 0; i--) {
        kill(daemons[i], SIGTERM);
        if (test_wait(daemons[i], 5) < 0) {
            kill(daemons[i], SIGKILL);
            test_wait(daemons[i], 5);
        }
    }
}

#endif
