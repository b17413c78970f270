/* worker.h -- the test program itself as a worker: TEST_WORKER=wait|fill-shm|call|compute chooses what it
 * does (worker.c). */
#ifndef TESTS_LAUNCH_WORKER_H
#define TESTS_LAUNCH_WORKER_H

#include "job/job.h"

const char *worker_program(void); /* its path */

/* Runs a job on this host, in this process, with `sh -c text` as each worker: nproc, hang_s, file (NULL:
 * /bin/sh), out_fd and err_fd are those of `given`. Its exit status. */
int worker_run(const char *text, co_job_spec given);

#endif
