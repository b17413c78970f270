/* cgroup.h -- what the control groups of this process leave it: its own group and every one above, version 2 and 1. */
#ifndef CO_BASE_CGROUP_H
#define CO_BASE_CGROUP_H

#include <stdint.h>

typedef struct co_cgroup {
    uint64_t memory_left; /* bytes that may still be taken; UINT64_MAX: no limit */
    int cpus;             /* what the quota amounts to, rounded up; 0: no limit */
} co_cgroup;

/* `root` is put before /proc and /sys: "" for this machine. What cannot be read is no limit. */
void co_cgroup_read(co_cgroup *out, const char *root);

#endif
