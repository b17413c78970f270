/* job.h -- one host's part of a job: starts the worker programs as the roster says, watches them, passes on
 * their output, reports who failed first and why, and leaves nothing behind.
 *
 * Each worker runs under a guard (a process of ours) in a session of its own; when the guard's tree is empty,
 * the worker is gone. When the process that called co_job_run dies, however it dies, the guards kill what is
 * left.
 *
 *     co_job_spec spec = {.terms = terms, .file = file, .argv = argv, .out_fd = 1, .err_fd = 2};
 *     int status;
 *     CO_TRY(co_job_run(&spec, roster, &status));       // the job's exit status
 */
#ifndef CO_JOB_JOB_H
#define CO_JOB_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "roster/roster.h"

enum { CO_JOB_OUT = 1, CO_JOB_ERR = 2 }; /* bits of redirects and tee */

typedef enum { CO_PREFIX_AUTO, CO_PREFIX_NONE, CO_PREFIX_RANK } co_job_prefix;

/* Everything is borrowed while co_job_run runs. */
typedef struct co_job_spec {
    co_terms terms;
    const char *file;            /* the program */
    const char *const *argv;     /* what it gets as arguments, its name first; NULL-terminated */
    int local_rank_at;           /* local_rank_flag=N is put before this word of argv; 0: not at all */
    const char *local_rank_flag; /* "--local_rank" */
    const char *host;            /* this host, in prefixes and messages; NULL: its name */
    const char *role;            /* NULL: "default" */
    const char *master_addr;     /* for a single host: instead of the roster's; NULL: the roster's */
    int master_port;             /* for a single host: instead of the roster's; 0: the roster's */
    bool omp_one;                /* OMP_NUM_THREADS=1 */
    /* If several launchers share this host: our first LOCAL_RANK, and the workers of the host; else 0, 0. */
    int local_first, local_world;
    int group, groups;       /* several launchers: GROUP_RANK and GROUP_WORLD_SIZE; groups 0: one launcher */
    bool virtual_local_rank; /* LOCAL_RANK=0 and one device of CUDA_VISIBLE_DEVICES each */

    const char *log_dir;      /* NULL: only error files, in a folder that is removed with the job */
    const uint8_t *redirects; /* [terms.nproc] to a file, not to out_fd or err_fd; NULL: none */
    const uint8_t *tee;       /* [terms.nproc] to both, "[role0]:" before each line; NULL: none */
    const bool *shown;        /* [terms.nproc] which pass to out_fd and err_fd; NULL: all */
    const char *tee_template; /* ${role_name} ${local_rank} ${rank} ${hostname} instead of "[role0]:"; NULL */
    co_job_prefix prefix;     /* AUTO: "[rank] " if there is more than one worker */
    int out_fd, err_fd;       /* for the workers' output and for messages about them */
    bool hushed;              /* another host shares this screen and reports what concerns all hosts */

    sigset_t signals; /* signals that end the job; all workers get them; other signals keep their effect */
    const char *signal_names; /* the same for TORCHELASTIC_SIGNALS_TO_HANDLE */
    /* Above 2: lines from whoever started us. Each is a signal's name (as if it had come), END (SIGTERM,
     * unless the job ends anyway) or empty (a sign of life). Its end, or a minute of silence, counts as
     * SIGTERM. 0: none. */
    int control_fd;
    double grace_s; /* from asking workers to end to SIGKILL */
    double stall_s; /* a worker without output and CPU time for this long ends the job; 0: never */
    double hang_s;  /* without stall_s: no output for this long is reported once; 0: five minutes */
} co_job_spec;

/* Runs rounds until the roster says that the job is over. *status is the exit status: that of the first
 * failure (128 + N for signal N), or 75 if SIGTERM or SIGUSR1 asked the job to end. An error means that the
 * roster refused this host or was lost, or that no worker could be started; no worker is left in that case
 * either. Changes the process's signal mask while it runs; one job at a time. */
co_err co_job_run(const co_job_spec *spec, co_roster *roster, int *status);

#endif
