/* launch_int.h -- the flags of `cohort launch`: one table gives the fields, the parser, PET_ variables,
 * --help and completion.
 *
 * A row: field, flag, what its value is, help. VALUE rows are const char * (NULL: not given), SWITCH rows
 * bool. A flag may have dashes or underscores; its value follows '=' or is the next argument. PET_<FLAG> in
 * the environment is its default.
 */
#ifndef CO_JOB_LAUNCH_LAUNCH_INT_H
#define CO_JOB_LAUNCH_LAUNCH_INT_H

#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/str.h"
#include "cohort.h" /* COHORT_VERSION */
#include "job/job.h"
#include "job/launch.h"
#include "place/place.h"
#include "term/say.h"

#define LAUNCH_FLAGS(VALUE, SWITCH)                                                                             \
    SWITCH(standalone, "--standalone", "one host, nothing to meet at; a free port")                             \
    VALUE(nproc, "--nproc-per-node", "N|auto|cpu|gpu",                                                          \
          "workers on this host (default 1; auto: GPUs, else CPUs)")                                            \
    VALUE(nnodes, "--nnodes", "N|MIN:MAX", "hosts (default 1)")                                                 \
    VALUE(node_rank, "--node-rank", "N", "which of the hosts this is, from 0")                                  \
    VALUE(master_addr, "--master-addr", "HOST", "the first host's address (default 127.0.0.1)")                 \
    VALUE(master_port, "--master-port", "PORT", "its port (default: a free one on one host, else 29500)")       \
    VALUE(endpoint, "--rdzv-endpoint", "HOST[:PORT]", "where the hosts meet (default port 29400)")              \
    VALUE(backend, "--rdzv-backend", "static|c10d|etcd-v3",                                                     \
          "how they meet (default static); etcd-v3: the endpoint is HOST:2379,HOST:2379,...")                   \
    VALUE(rdzv_id, "--rdzv-id", "ID", "the job's name, the same on all hosts")                                  \
    VALUE(conf, "--rdzv-conf", "KEY=VALUE,...", "join_timeout, last_call_timeout, lost_after: seconds")         \
    VALUE(local_addr, "--local-addr", "HOST", "this host's address for the others")                             \
    VALUE(port, "--port", "PORT", "of a training: where this host takes gradients (default: a free port)")      \
    VALUE(hosts, "--hosts", "HOST,HOST,...",                                                                    \
          "start the job on these hosts over ssh (user@host, or as ~/.ssh/config has it)")                      \
    VALUE(hostfile, "--hostfile", "FILE", "the same from a file: a line per host; slots=N: N workers there")    \
    VALUE(ssh, "--ssh", "COMMAND", "with --hosts: ssh and its options (default: COHORT_SSH, or ssh)")           \
    VALUE(env, "--env", "NAME,NAME=VALUE,...", "variables for the workers; with --hosts: on all hosts")         \
    VALUE(max_restarts, "--max-restarts", "N", "how often all workers start again after a failure (default 0)") \
    SWITCH(module, "--module", "the program is a Python module; short: -m")                                     \
    SWITCH(no_python, "--no-python", "run the program as it is, not through Python")                            \
    SWITCH(run_path, "--run-path", "the program is a Python script, given from / on")                           \
    SWITCH(legacy, "--legacy-local-rank", "pass --local-rank=N to every script as its first argument")          \
    SWITCH(use_env, "--use-env",                                                                                \
           "no effect unless the script defines --local-rank: the local rank is then only in LOCAL_RANK")       \
    VALUE(log_dir, "--log-dir", "FOLDER", "files for every worker, merged.log, blame.json; /dev/null: none")    \
    VALUE(redirects, "--redirects", "0|1|2|3|RANK:N,...",                                                       \
          "to files only: 1 stdout, 2 stderr, 3 both; short: -r")                                               \
    VALUE(tee, "--tee", "0|1|2|3|RANK:N,...", "to files and the console, as [default0]:line; short: -t")        \
    VALUE(filter, "--local-ranks-filter", "N,N,...", "the console shows these local ranks only")                \
    VALUE(prefix, "--log-prefix", "auto|none|rank", "what stands before a line on the console")                 \
    VALUE(tee_template, "--log-line-prefix-template", "TEXT",                                                   \
          "for --tee: ${role_name} ${local_rank} ${rank} ${hostname}")                                          \
    VALUE(role, "--role", "NAME", "the workers' role (default \"default\")")                                    \
    VALUE(grace, "--grace", "SECONDS", "from asking workers to end to SIGKILL (default 30)")                    \
    VALUE(shutdown_timeout, "--shutdown-timeout", "SECONDS", "the same")                                        \
    VALUE(stall, "--stall-after", "SECONDS",                                                                    \
          "end the job if a worker neither prints nor computes for this long")                                  \
    VALUE(signals, "--signals-to-handle", "SIGTERM,...", "signals that workers get before the job ends")        \
    SWITCH(virtual_rank, "--virtual-local-rank", "LOCAL_RANK=0 and one GPU in CUDA_VISIBLE_DEVICES for each")   \
    SWITCH(insecure, "--insecure", "several hosts without token and TLS")                                       \
    VALUE(monitor, "--monitor-interval", "SECONDS", "ignored: the end of a worker is noticed at once")          \
    VALUE(start_method, "--start-method", "spawn|fork|forkserver", "ignored: workers are programs")             \
    VALUE(events, "--event-log-handler", "NAME", "ignored: there is only the null handler")                     \
    VALUE(logs_specs, "--logs-specs", "NAME", "refused: a plugin of Python")                                    \
    VALUE(numa, "--numa-binding", "node|socket|exclusive|core-complex", "refused: use numactl in the script")   \
    VALUE(dup_out, "--duplicate-stdout-filters", "WORD,...", "refused: grep merged.log of --log-dir")           \
    VALUE(dup_err, "--duplicate-stderr-filters", "WORD,...", "refused: grep merged.log of --log-dir")

#define VALUE_FIELD(field, name, what, help) const char *field;
#define SWITCH_FIELD(field, name, help)      bool field;
typedef struct launch_args {
    LAUNCH_FLAGS(VALUE_FIELD, SWITCH_FIELD)
    bool help;
    bool train;             /* the program is our own training: `train WORDS` (program.c) */
    const char *nnodes_key; /* the setting that gave nnodes, for messages; NULL: the flag */
    const char **program;   /* NULL-terminated: the program, then its arguments */
    int n;
    char *const *line; /* the whole command line, if a scheduler may start it again; else NULL */
} launch_args;

/* flags.c. Reads a line. A flag before the program that is not in the table goes to the program, and `note`
 * says so. */
co_err launch_parse(launch_args *a, int argc, char **argv, void (*note)(const char *text));
void launch_args_free(launch_args *a);
/* The flag's full name: "--nnodes" for "--nnodes=2". NULL: not a flag, or several flags begin like this. */
const char *launch_flag_name(const char *word);
/* Writes the arguments that give the flags in `names` their values in `a`. Returns how many; `out` has room
 * for all. */
int launch_words(const char **out, co_pool *pool, const launch_args *a, const char *const *names);

/* values.c: read a flag's value; CO_EINPUT with a message that says what is needed. */
co_err flag_whole(int *out, const char *name, const char *text, int min, int max);
co_err flag_seconds(double *out, const char *name, const char *text);
co_err flag_one_of(const char *name, const char *text, const char *choices);

/* The line, checked and turned into what the job needs. */
typedef struct launch_plan {
    co_job_spec spec;
    bool local; /* one host: no roster over the network */
    co_meet meet;
    co_place *place; /* the scheduler that started us, if it knows where the hosts meet; in the pool */
    uint8_t redirects[CO_MAX_WORKERS], tee[CO_MAX_WORKERS];
    bool shown[CO_MAX_WORKERS];
    char *const *line; /* of the launch_args */
    char **train;      /* our own training: "train" and its words, NULL-terminated; NULL: another program */
    int n_train;
    int port;        /* --port; 0: any free one */
    char pixels[32]; /* COHORT_FAULT: see co_hosts_line */
    char *told; /* `cohort host`: what `cohort join` is told about the job; NULL: nobody joins with a code */
    co_pool pool;
} launch_plan;

/* how_many.c: the hosts and where they meet; the part of a plan that does not depend on what runs. */
co_err plan_hosts(launch_plan *p, const launch_args *a);
/* plan.c */
co_err plan_make(launch_plan *p, const launch_args *a); /* CO_EINPUT: a value is refused */
void plan_free(launch_plan *p);
int launch_run(launch_plan *p,
               const co_launch_calls *calls); /* start.c: runs the job to its end; the exit status */

/* where.c: where the hosts meet, from the flags; where_etcd.c, where_place.c: from etcd, from a scheduler. */
co_err plan_where(launch_plan *p, const launch_args *a);
bool wants_etcd(const launch_args *a);
co_err plan_where_etcd(launch_plan *p, const launch_args *a);
co_err plan_find_place(launch_plan *p, const launch_args *a); /* reads the environment only */
co_err plan_where_place(launch_plan *p);                      /* waits until the first launcher says where */
/* In a batch script or a shell of Slurm (place->outside): becomes srun with this line. Returns only if
 * that fails. */
co_err plan_into_step(launch_plan *p);

#define OWN_PROGRAM "/proc/self/exe" /* this binary, on every host */
/* own.c: our own training as the program. Sets a->train, and a->program to a form that means the same on
 * all hosts. */
co_err own_training(launch_args *a);
co_err plan_own_training(launch_plan *p, const launch_args *a); /* instead of plan_program */

/* program.c: what is executed. */
bool program_is_file(const char *path);
char *program_in_path(co_pool *pool, const char *name); /* in the pool; NULL: not found */
co_err plan_program(launch_plan *p, const launch_args *a);
void plan_local_rank(launch_plan *p, const launch_args *a, int at); /* local_rank.c: as word `at` of argv */
bool launch_looks_like_program(const launch_args *a, const char *word); /* a file, or a program in PATH */

/* token.c */
co_err token_from_env(co_meet *where);                         /* and removes it from the environment */
co_err token_from_user(const co_terms *terms, co_meet *where); /* asks at the terminal if a token is needed */
/* Reads a line at the terminal without echo, up to three times until `take` accepts it; after each refusal it
 * says why. False: no terminal, or the user typed nothing. */
bool ask_secret(const char *prompt, co_err (*take)(void *ctx, const char *typed), void *ctx);

/* cpus.c: this task's part of the CPUs, if several tasks of this machine train. */
void cpus_share(const co_place *place);

/* host.c: listens and shows the code. */
co_err host_listen(launch_plan *p);

/* meet.c: what job/meet.h shows of a plan, which the caller keeps. */
struct co_hosts_line;
void hosts_line_fill(struct co_hosts_line *hosts, launch_plan *p);

/* hosts.c: --hosts and --hostfile; from_stdin.c: the other end of it. The exit status. */
int launch_on_hosts(launch_args *a);
int launch_from_stdin(const co_launch_calls *calls);
/* conductor.c: while a training runs, passes on what the conductor says on `fd` as signals to this
 * process. */
typedef struct conductor conductor;
co_err conductor_start(conductor **out, int fd);
void conductor_stop(conductor *c); /* NULL is fine */

/* variables.c: --env */
enum { LAUNCH_ENV_MOST = 256 };
/* Entries NAME=VALUE, NULL-terminated, into `env` (zeroed, [LAUNCH_ENV_MOST + 1]): those of `always` that are
 * set, then those of the line. */
co_err variables_list(const char **env, co_pool *pool, const launch_args *a, const char *const *always);
co_err variable_set(const char *entry, co_pool *pool);     /* NAME=VALUE; the value may have any bytes */
co_err variables_set(const launch_args *a, co_pool *pool); /* into our own environment, for the workers */

/* shared.c: used by `cohort host`, `cohort join` and --hosts */
enum { JOB_FLAGS_MOST = 32 };
extern const char *const job_flags[JOB_FLAGS_MOST]; /* flags that the first host passes on; NULL-terminated */
co_err name_job(co_pool *pool, const char **out); /* a short new name for the job; its log folders carry it */

#endif
