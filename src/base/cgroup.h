/* cgroup.h -- the memory and CPUs that control groups leave to this process. Its own group and every group
 * above count; versions 1 and 2. */
#ifndef CO_BASE_CGROUP_H
#define CO_BASE_CGROUP_H

#include <stdint.h>

typedef struct co_cgroup {
    uint64_t memory_left; /* bytes that can still be allocated; UINT64_MAX: no limit */
    int cpus;             /* the CPU quota in whole CPUs, rounded up; 0: no limit */
} co_cgroup;

/* `root` is a prefix for /proc and /sys: "" for this machine. A file that cannot be read sets no limit. */
void co_cgroup_read(co_cgroup *out, const char *root);

#endif
