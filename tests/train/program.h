/* program.h -- `cohort train` as a user runs it, and what it left behind. */
#ifndef TESTS_TRAIN_PROGRAM_H
#define TESTS_TRAIN_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct outcome {
    int status; /* exit status, or 128 + signal */
    char out[16384];
    /* of summary.json; zero if there is none */
    char sha[65], state[16];
    long long steps, recoveries, allocs, faults;
    double median_ms, p99_ms; /* of recoveries; nan if none */
} outcome;

/* `cohort train WORDS run.dir=DIR`, to its end. */
outcome program_run(const char *dir, const char *words, ...) __attribute__((format(printf, 2, 3)));

/* The same in the background, in a process group of its own; its output in DIR.out. The pid is the
 * supervisor's. */
pid_t program_start(const char *dir, const char *words, ...) __attribute__((format(printf, 2, 3)));
outcome program_end(pid_t pid, const char *dir); /* waits for it */

int program_ranks(pid_t supervisor, pid_t *pids, int most); /* its children now */
bool program_said(const char *dir, const char *words);      /* in its output so far */
bool program_saved(const char *dir);                        /* is there a finished checkpoint? */
bool process_gone(pid_t pid);

/* The words of the last outcome are there, and in it. */
void program_same(const outcome *a, const outcome *b, const char *what); /* done, same weights, same steps */

#endif
