/* `cohort train` as containers start it: as process 1 of a PID namespace, with a tiny /dev/shm, in a control
 * group. */
#include "cli/runs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG_RUN "model=mlp trainer.max_epochs=1000000 trainer.max_time=2m console=plain"

/* The namespace's process 1, as this machine counts. */
static int first_of(pid_t unshare_pid)
{
    test_run r = test_sh("cat /proc/%d/task/%d/children", (int)unshare_pid, (int)unshare_pid);
    int pid = atoi(r.out);

    free(r.out);
    return pid;
}

struct scene {
    pid_t unshare_pid;
    const char *words; /* that the run has said */
};

static bool has_begun(void *ctx)
{
    const struct scene *scene = ctx;
    test_run r = test_sh("grep -q '%s' out && ls orphan.1 orphan.2 && grep -q cohort /proc/%d/comm",
                         scene->words, first_of(scene->unshare_pid));

    free(r.out);
    return r.status == 0;
}

/* The orphans have ended; nobody but process 1 can wait for them. */
static bool has_no_zombies(void *ctx)
{
    const struct scene *scene = ctx;
    test_run r =
        test_sh("for p in $(cat orphan.1 orphan.2); do test ! -e /proc/%d/root/proc/$p || exit 1; done",
                first_of(scene->unshare_pid));

    free(r.out);
    return r.status == 0;
}

static struct scene start_as_first(const char *line, const char *words)
{
    if (test_sh("unshare --pid --fork --mount-proc sh -c 'mount -t tmpfs -o size=64k none /dev/shm'").status !=
        0)
        test_skip("PID namespaces need root (or CAP_SYS_ADMIN)");
    struct scene scene = {.words = words};
    scene.unshare_pid =
        test_spawn("out",
                   "exec unshare --pid --fork --mount-proc sh -c 'mount -t tmpfs -o size=64k none /dev/shm\n"
                   "(sh -c \"echo \\$\\$ > tmp.1; mv tmp.1 orphan.1\" &)\n"
                   "(sh -c \"echo \\$\\$ > tmp.2; mv tmp.2 orphan.2; sleep 0.2\" &)\n"
                   "exec $COHORT %s'",
                   line);
    test_until(has_begun, &scene, 30, "process 1 runs");
    return scene;
}

TEST(a_run_as_process_1_with_a_tiny_dev_shm_trains_reaps_orphans_and_saves_on_sigterm)
{
    struct scene scene = start_as_first("train " LONG_RUN " trainer.devices=2 run.dir=r", "epoch 1/");

    test_until(has_no_zombies, &scene, 20, "orphans are waited for");
    CHECK(kill(first_of(scene.unshare_pid), SIGTERM) == 0, "kill");
    int status = test_wait(scene.unshare_pid, 20);
    test_run r = test_sh("cat out; ls r/checkpoints/last/ && $COHORT ckpt verify r/checkpoints/last");
    CHECK(status == 75 && r.status == 0, "exit status %d: %s", status, r.out);
    free(r.out);
}

/* Exit statuses go through process 1: of a training that is done, of bad input, of a run that somebody
 * kills. */
TEST(process_1_exits_as_the_run_does)
{
    static const struct {
        const char *line;
        int status;
    } rows[] = {{"train model=mlp trainer.devices=2 trainer.max_epochs=1 run.dir=done", 0},
                {"train model=mpl", 2},
                {"launch --nproc-per-node=2 sh -c \"exit 3\"", 3}};

    if (test_sh("unshare --pid --fork --mount-proc true").status != 0)
        test_skip("PID namespaces need root (or CAP_SYS_ADMIN)");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        test_run r =
            test_sh("exec unshare --pid --fork --mount-proc sh -c 'exec $COHORT %s' 2>&1", rows[i].line);
        CHECK(r.status == rows[i].status, "%s: %d, not %d\n%s", rows[i].line, r.status, rows[i].status, r.out);
        free(r.out);
    }
    struct scene scene = start_as_first("train " LONG_RUN " trainer.devices=1 run.dir=killed", "epoch 1/");
    test_until(has_no_zombies, &scene, 20, "the run is the only child of process 1");
    test_run r = test_sh("kill -9 $(cat /proc/%d/task/*/children)", first_of(scene.unshare_pid));
    CHECK(r.status == 0 && test_wait(scene.unshare_pid, 20) == 128 + SIGKILL, "%s", r.out);
    free(r.out);
}

/* One CPU and 200 MB: control groups of version 2, or of version 1. */
static const char limits[] =
    "g=cohort-test-$$\n"
    "if test -e /sys/fs/cgroup/cgroup.controllers; then\n"
    "  all=/sys/fs/cgroup/$g; mkdir $all || exit 77\n"
    "  echo '100000 100000' > $all/cpu.max && echo 200000000 > $all/memory.max || { rmdir $all; exit 77; }\n"
    "else\n"
    "  all=\"/sys/fs/cgroup/cpu/$g /sys/fs/cgroup/memory/$g\"; mkdir $all || exit 77\n"
    "  echo 100000 > /sys/fs/cgroup/cpu/$g/cpu.cfs_period_us && echo 100000 > "
    "/sys/fs/cgroup/cpu/$g/cpu.cfs_quota_us "
    "&& echo 200000000 > /sys/fs/cgroup/memory/$g/memory.limit_in_bytes || { rmdir $all; exit 77; }\n"
    "fi\n";

TEST(a_run_keeps_to_the_cpus_and_the_memory_of_its_control_group)
{
    test_run r = test_sh("exec 2>&1\n%s"
                         "(for d in $all; do sh -c 'echo $PPID' > $d/cgroup.procs || exit 77; done\n"
                         "$COHORT train model=mlp trainer.max_epochs=1 run.dir=auto 2>&1 | grep '^ranks'\n"
                         "$COHORT train model=mlp trainer.devices=2 trainer.max_epochs=1 run.dir=two > "
                         "two.out 2>&1; echo two: $?\n"
                         "$COHORT train data=fake_images data.size=224 model=resnet50 data.batch_size=256 "
                         "run.dir=big; echo big: $?)\n"
                         "s=$?; rmdir $all; exit $s",
                         limits);

    if (r.status == 77)
        test_skip("no control group can be made here: %s", r.out);
    CHECK(test_contains(r.out, "ranks     1 on this host") && test_contains(r.out, "two: 0"), "%s", r.out);
    CHECK(test_contains(r.out, "of memory but only 1") && test_contains(r.out, "big: 2"), "%s", r.out);
    free(r.out);
}
