/* evidence.h -- traces that a death leaves in the system: counters of control groups, the kernel's log, full
 * shared memory, a CPU without the instructions, an error file. Each function takes the path to read, so that
 * tests can use their own files. */
#ifndef CO_PROC_EVIDENCE_H
#define CO_PROC_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>

/* Kills by the out-of-memory killer so far, of our control group or of the machine; -1: unknown. */
long long co_evidence_oom_kills(const char *root);
/* Does the kernel's log say that the out-of-memory killer killed this process? */
bool co_evidence_killed_in(const char *kmsg, int pid);
/* Each writes what it found to `says` and returns true, or returns false. */
bool co_evidence_shm_full(const char *path, char *says, size_t size);
bool co_evidence_no_instructions(const char *cpuinfo, char *says, size_t size);
bool co_evidence_error_file(const char *path, char *says, size_t size);

#endif
