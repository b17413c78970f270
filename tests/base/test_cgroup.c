/* Fake machines: trees of files in the test's own folder. */
#include "base/cgroup.h"

#include <string.h>

#include "base/fs.h"
#include "harness.h"

static void put(const char *path, const char *text)
{
    char dir[512];

    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    CHECK_OK(co_fs_mkdirs(dir));
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

static co_cgroup read_at(const char *root)
{
    co_cgroup g;

    co_cgroup_read(&g, root);
    return g;
}

TEST(a_machine_without_control_groups_has_no_limit)
{
    co_cgroup g = read_at("none");

    CHECK(g.memory_left == UINT64_MAX && g.cpus == 0, "%llu %d", (unsigned long long)g.memory_left, g.cpus);
}

/* The smallest memory limit is in the middle group, the smallest CPU limit at the bottom. */
TEST(limits_of_the_own_group_and_of_all_above_count)
{
    put("m/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    put("m/sys/fs/cgroup/memory.max", "max\n");
    put("m/sys/fs/cgroup/slurm/memory.max", "9000\n");
    put("m/sys/fs/cgroup/slurm/memory.current", "1000\n");
    put("m/sys/fs/cgroup/slurm/job_7/memory.max", "5000\n");
    put("m/sys/fs/cgroup/slurm/job_7/memory.current", "4500\n");
    put("m/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    put("m/sys/fs/cgroup/slurm/cpu.max", "800000 100000\n");
    put("m/sys/fs/cgroup/slurm/job_7/cpu.max", "max 100000\n");
    put("m/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "150000 100000\n");
    put("m/sys/fs/cgroup/slurm/other/cpu.max", "100000 100000\n"); /* another job's group */
    co_cgroup g = read_at("m");
    CHECK(g.memory_left == 500, "%llu", (unsigned long long)g.memory_left);
    CHECK(g.cpus == 2, "%d", g.cpus);
}

/* Page cache counts as used memory, but the kernel gives it back on demand. */
TEST(files_that_the_kernel_keeps_are_not_counted_as_used)
{
    put("m/proc/self/cgroup", "4:memory:/x\n0::/pod\n");
    put("m/sys/fs/cgroup/pod/memory.max", "9000\n");
    put("m/sys/fs/cgroup/pod/memory.current", "8900\n");
    put("m/sys/fs/cgroup/pod/memory.stat", "anon 1900\nfile 7000\ninactive_file 4000\nactive_file 3000\n");
    CHECK(read_at("m").memory_left == 7100, "%llu", (unsigned long long)read_at("m").memory_left);
    put("m/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "5000\n");
    put("m/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "4000\n");
    put("m/sys/fs/cgroup/memory/x/memory.stat", "inactive_file 9\ntotal_inactive_file 1000\n");
    CHECK(read_at("m").memory_left == 2000, "%llu", (unsigned long long)read_at("m").memory_left);
}

TEST(version_1_has_a_hierarchy_per_controller)
{
    put("m/proc/self/cgroup", "5:cpu,cpuacct:/a/b\n4:memory:/docker/x\n3:cpuset:/\n0::/\n");
    put("m/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("m/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "3000\n");
    /* above the limit: nothing is left */
    put("m/sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "4000\n");
    put("m/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    put("m/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    put("m/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
    put("m/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    co_cgroup g = read_at("m");
    CHECK(g.memory_left == 0, "%llu", (unsigned long long)g.memory_left);
    CHECK(g.cpus == 3, "%d", g.cpus);
}

/* A container sees the host's path although its own group is mounted at the top. */
TEST(a_path_that_is_not_mounted_leaves_the_top)
{
    put("m/proc/self/cgroup", "0::/kubepods/pod9/c1\n");
    put("m/sys/fs/cgroup/memory.max", "7000\n");
    put("m/sys/fs/cgroup/memory.current", "100\n");
    CHECK(read_at("m").memory_left == 6900, "%llu", (unsigned long long)read_at("m").memory_left);
    put("m/proc/self/cgroup", "0::/../../sys\n"); /* a path outside our mount */
    CHECK(read_at("m").memory_left == 6900, "%llu", (unsigned long long)read_at("m").memory_left);
}

TEST(torn_files_of_control_groups_are_no_limit)
{
    put("m/proc/self/cgroup", "nonsense\n0:\n::\n0::/a\n");
    put("m/sys/fs/cgroup/a/memory.max", "x\n");
    put("m/sys/fs/cgroup/a/cpu.max", "100000\n");
    put("m/sys/fs/cgroup/cpu.max", "-5 0\n");
    co_cgroup g = read_at("m");
    CHECK(g.memory_left == UINT64_MAX && g.cpus == 0, "%llu %d", (unsigned long long)g.memory_left, g.cpus);
}
