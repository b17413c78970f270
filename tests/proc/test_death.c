/* How a process died: what its wait status and the kernel's records say. */
#include "proc/death.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "harness.h"
#include "proc/evidence.h"

static void write_text(const char *path, const char *text)
{
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

/* --- the records --------------------------------------------------------------------------------------- */
TEST(kills_of_the_oom_killer_are_counted_in_our_own_group_or_else_in_the_machine)
{
    CHECK(co_evidence_oom_kills("empty") == -1, "nothing is known");
    CHECK_OK(co_fs_mkdirs("r/proc/self"));
    CHECK_OK(co_fs_mkdirs("r/sys/fs/cgroup/a/b"));
    write_text("r/proc/vmstat", "nr_free_pages 12\noom_kill 7\n");
    CHECK(co_evidence_oom_kills("r") == 7, "the machine's");
    write_text("r/proc/self/cgroup", "0::/a/b\n");
    write_text("r/sys/fs/cgroup/a/b/memory.events", "low 0\nhigh 0\nmax 5\noom 3\noom_kill 2\n");
    CHECK(co_evidence_oom_kills("r") == 2, "the group's: %lld", co_evidence_oom_kills("r"));
    write_text("r/proc/self/cgroup", "5:cpu:/x\n4:memory:/m\n");
    CHECK_OK(co_fs_mkdirs("r/sys/fs/cgroup/memory/m"));
    write_text("r/sys/fs/cgroup/memory/m/memory.oom_control",
               "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    CHECK(co_evidence_oom_kills("r") == 4, "version 1's");
}

TEST(the_kernels_log_names_whom_it_killed)
{
    write_text("kmsg", "3,1,5,-;Out of memory: Killed process 4711 (python3) total-vm:1kB\n");
    CHECK(co_evidence_killed_in("kmsg", 4711), "not found");
    CHECK(!co_evidence_killed_in("kmsg", 471) && !co_evidence_killed_in("none", 4711), "found too much");
}

TEST(the_instructions_that_a_cpu_lacks_are_named)
{
    char says[200];

    write_text("cpuinfo", "processor : 0\nflags\t\t: fpu sse4_2 avx f16c fma bmi2 avx2 \nbugs : \n");
    CHECK(co_evidence_no_instructions("cpuinfo", says, sizeof says) && strstr(says, "no avx512f"), "%s", says);
    CHECK(!strstr(says, "avx2"), "%s", says);
    CHECK(!co_evidence_no_instructions("none", says, sizeof says), "no file says nothing");
}

TEST(pytorchs_error_files_are_read_in_both_forms_and_broken_ones_passed_over)
{
    char says[200] = "";

    write_text("e",
               "{\"message\":{\"message\":\"ValueError: x\\nmore\",\"extraInfo\":{\"timestamp\":\"17\"}}}");
    CHECK(co_evidence_error_file("e", says, sizeof says) && strcmp(says, "ValueError: x") == 0, "%s", says);
    write_text("e", "{\"message\":\"text\",\"timestamp\":17}");
    CHECK(co_evidence_error_file("e", says, sizeof says) && strcmp(says, "text") == 0, "%s", says);
    write_text("e", "{\"message\":");
    CHECK(!co_evidence_error_file("e", says, sizeof says), "broken");
    CHECK(!co_evidence_error_file("absent", says, sizeof says), "absent");
}

/* --- the teller ---------------------------------------------------------------------------------------- */
enum { EXITED_3 = 3 << 8, BY_SHELL_11 = 139 << 8, NOT_FOUND = 127 << 8 };

static void tells(int wait_status, pid_t pid, co_death_traces *before, const char *how, const char *advice)
{
    co_death_cause cause;

    co_death_tell(&cause, wait_status, pid, before);
    CHECK(strcmp(cause.how, how) == 0, "%s, not %s", cause.how, how);
    CHECK(advice[0] ? test_contains(cause.advice, advice) : !cause.advice[0], "%s", cause.advice);
}

TEST(a_death_is_told_by_its_signal_or_exit_status)
{
    co_death_traces before;

    co_death_traces_take(&before, "empty");
    tells(EXITED_3, 1, &before, "exited with status 3", "");
    tells(BY_SHELL_11, 1, &before, "exited with status 139 (how a shell reports SIGSEGV)", "");
    tells(NOT_FOUND, 1, &before, "exited with status 127", "did not find");
    tells(SIGSEGV, 1, &before, "killed by SIGSEGV (11)", "PYTHONFAULTHANDLER=1");
    tells(SIGKILL, 1, &before, "killed by SIGKILL (9)", "kill -9");
    tells(SIGXFSZ, 1, &before, "killed by SIGXFSZ (25)", "ulimit -f");
    tells(34, 1, &before, "killed by SIG? (34)", "");
}

TEST(a_sigkill_is_the_out_of_memory_killers_only_if_the_kernels_records_say_so)
{
    static const char by_kernel[] = "killed by SIGKILL (9), by the kernel's out-of-memory killer";
    co_death_traces before;

    CHECK_OK(co_fs_mkdirs("r/proc"));
    CHECK_OK(co_fs_mkdirs("r/dev"));
    write_text("r/proc/vmstat", "oom_kill 7\n");
    co_death_traces_take(&before, "r");
    tells(SIGKILL, 12, &before, "killed by SIGKILL (9)", "somebody sent SIGKILL");
    write_text("r/proc/vmstat", "oom_kill 8\n");
    tells(EXITED_3, 12, &before,
          "exited with status 3; the kernel's out-of-memory killer has struck here since the start", "");
    tells(SIGKILL, 12, &before, by_kernel, "memory is full");
    /* the first death has used up that kill */
    tells(SIGKILL, 13, &before, "killed by SIGKILL (9)", "somebody sent SIGKILL");
    write_text("r/dev/kmsg", "3,1,5,-;Out of memory: Killed process 14 (python3) total-vm:1kB\n");
    tells(SIGKILL, 14, &before, by_kernel, "memory is full");
}

TEST(a_sigill_names_the_instructions_that_the_cpu_lacks)
{
    co_death_traces before;
    co_death_cause cause;

    CHECK_OK(co_fs_mkdirs("r/proc"));
    write_text("r/proc/cpuinfo", "flags\t\t: fpu sse4_2 avx f16c fma bmi2 \n");
    co_death_traces_take(&before, "r");
    co_death_tell(&cause, SIGILL, 1, &before);
    CHECK(test_contains(cause.how, "killed by SIGILL (4); this CPU has no avx2, avx512f"), "%s", cause.how);
}
