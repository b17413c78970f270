/* worker.h -- the test program itself as a worker: TEST_WORKER=wait|fill-shm|call|compute chooses what it
 * does (worker.c). */
#ifndef TESTS_LAUNCH_WORKER_H
#define TESTS_LAUNCH_WORKER_H

const char *worker_program(void); /* its path */

#endif
