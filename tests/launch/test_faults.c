/* Faults on one host: what is printed, the exit status, and how soon. docs/faults.md lists them. */
#include "hosts.h"

#include "worker.h"

/* Runs a line to its end; $W is the program of worker.h. */
static void fault(const char *by, const char *name, double within, int want, const char *words, const char *line)
{
    double began = co_now_s();
    test_run r = test_sh("export OMP_NUM_THREADS=1 TMPDIR=$PWD W=%s; %s", worker_program(), line);

    if (r.status == 77)
        test_skip("%s: cannot be made here: %s", name, r.out);
    fault_row(by, name, began, within, r.status, want, r.out, words);
    free(r.out);
}

#define LAUNCH "$COHORT launch --nproc-per-node=2 --no-python "

TEST(fault_of_a_worker_that_exits_or_crashes)
{
    fault(__func__, "a worker exits with status 3", 10, 3, "exited with status 3",
          LAUNCH "sh -c 'if [ $RANK = 1 ]; then echo no such layer >&2; exit 3; fi; exec sleep 60'");
    fault(__func__, "a worker crashes", 10, 139, "killed by SIGSEGV (11)",
          LAUNCH "sh -c 'if [ $RANK = 1 ]; then kill -SEGV $$; fi; exec sleep 60'");
}

TEST(fault_of_a_worker_that_hangs_in_a_read)
{
    fault(__func__, "a worker hangs in a read, `--stall-after=1`", 15, 1, "in read of",
          "mkfifo fifo; sleep 60 > fifo & w=$!; " LAUNCH
          "--stall-after=1 sh -c 'if [ $RANK = 1 ]; then exec cat fifo; fi; while :; do echo on; sleep 0.1; "
          "done'; s=$?; kill $w; exit $s");
}

TEST(fault_of_a_worker_that_the_kernel_kills_for_memory)
{
    fault(__func__, "out of memory (a control group's limit)", 30, 137,
          "killed by SIGKILL (9), by the kernel's out-of-memory killer",
          "top=/sys/fs/cgroup; [ -d $top/memory ] && top=$top/memory; g=$top/cohort-test-$$; mkdir $g || "
          "exit 77\n"
          "for f in memory.limit_in_bytes memory.max; do [ -e $g/$f ] && echo 100M > $g/$f && ok=1; done\n"
          "[ -e $g/memory.swap.max ] && echo 0 > $g/memory.swap.max\n"
          "[ \"$ok\" ] && (sh -c 'echo $PPID' > $g/cgroup.procs && exec " LAUNCH
          "sh -c '[ $RANK = 1 ] && exec tail /dev/zero; exec sleep 50'); s=$?\n"
          "rmdir $g; [ \"$ok\" ] || exit 77; exit $s");
}

TEST(fault_of_a_full_disk_under_log_dir)
{
    fault(__func__, "disk full under `--log-dir`", 15, 0,
          "No space left on device; the job goes on without log files",
          "mkdir logs; unshare -m true || exit 77; unshare -m sh -c 'mount -t tmpfs -o size=64k none logs || "
          "exit "
          "77; " LAUNCH "--log-dir=logs seq 1 20000 2>&1 | tee all | grep -v \"^\\[\"; "
          "grep -q \"\\] 20000$\\|x2 20000$\" all'");
}

TEST(fault_of_a_disk_that_is_full_from_the_start)
{
    fault(__func__, "disk full under `--log-dir` from the start", 15, 0,
          "No space left on device; the job goes on without log files",
          "mkdir logs; unshare -m true || exit 77; unshare -m sh -c 'mount -t tmpfs -o size=64k none logs || "
          "exit "
          "77; cat /dev/zero > logs/full 2>/dev/null; " LAUNCH "--log-dir=logs echo on 2>&1'");
}

TEST(fault_of_a_full_shared_memory)
{
    fault(__func__, "SIGBUS with a full /dev/shm", 15, 135, "killed by SIGBUS (7); /dev/shm is full (8 MiB)",
          "unshare -m true || exit 77; unshare -m sh -c 'mount -t tmpfs -o size=8m none /dev/shm || exit 77; "
          "TEST_WORKER=fill-shm exec $COHORT launch --no-python $W'");
}
