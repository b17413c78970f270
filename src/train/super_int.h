/* super_int.h -- the supervisor: one struct for each of its files, written by that file alone. Seen by this
 * room only. */
#ifndef CO_TRAIN_SUPER_INT_H
#define CO_TRAIN_SUPER_INT_H

#include <sys/types.h>

#include "proc/crew.h"
#include "proc/death.h"
#include "train/carry_int.h"
#include "train/run_int.h"
#include "train/save_int.h"
#include "train/watch_int.h"

/* --- stop.c: requests to stop --------------------------------------------------------------------------- */
struct stop {
    int signals;       /* descriptor; -1: none */
    uint64_t asked_ns; /* when the last signal came; 0: none yet */
    bool wished;       /* hooks.wants_stop said yes */
    bool at_once;      /* a second one came soon after the first */
    bool may_leave;    /* this host may leave alone; the others go on */
    bool leaves;       /* it does */
};
void stop_turn(const struct run *run, struct stop *stop);

/* --- child.c: a child process with a deadline ----------------------------------------------------------- */
typedef enum { CHILD_RUNS, CHILD_GONE, CHILD_HELD } child_state;
typedef enum { NOT_FENCED, FENCED_STOPPED, FENCED_STALLED } child_fenced;
struct child {
    pid_t pid; /* 0: none */
    int pidfd;
    uint64_t beat, last_ns;
    double still_s;  /* without progress */
    double killed_s; /* since it was killed */
    bool stopped;    /* by SIGSTOP */
    bool killed;
    child_fenced fenced; /* why it was killed for its deadline */
};
co_err child_start(struct child *child, const co_child_spec *spec);
void child_kill(struct child *child);
/* One turn: notices its exit (GONE, with *status), kills it when `beat` does not change for its limit. HELD:
 * it was killed and does not exit. */
child_state child_turn(struct child *child, uint64_t beat, double stopped_s, double stall_s, int *status);

/* --- progress.c: how far an evaluation has come --------------------------------------------------------- */
struct eval_progress {
    uint32_t unit, done;
};
void report_evaluation(const struct run *run, struct eval_progress *last);

/* --- saver.c: one child process at a time writes a checkpoint ------------------------------------------- */
enum { SAVE_TRIES = 3 };
struct saver {
    const struct run *run;
    struct child child; /* pid 0: none is under way */
    struct child held;  /* an earlier one that was killed and does not exit */
    int pipe, tries;
    saved_state what;
    uint64_t began_ns;
    bool slow_reported;
    int64_t saved_step; /* the newest on disk; -1: none yet */
    char failure[256];  /* why the last one was not saved */
};
/* Notices the end of the one that is under way; kills it past its deadline. */
void saver_turn(struct saver *saver);
/* The unit before which a state is to be saved and no saver was started for it yet; 0: none. */
uint32_t saver_wanted(const struct saver *saver);
/* Starts a saver for it. All results of the units before, and none of later ones, have been handed to the
 * hooks. */
void saver_start(struct saver *saver, uint32_t unit);
/* Waits for the one that is under way, until its deadline; `lost`: it may not write any more. When `stop` says
 * to leave at once, it has LEAVE_SAVE_MS left. */
void saver_finish(struct saver *saver, struct stop *stop, bool lost);
/* The last state, after `step` steps, unless it is saved already. */
co_err save_last(struct saver *saver, struct stop *stop, int64_t step);

/* --- bad_samples.c: samples that cannot be read --------------------------------------------------------- */
struct bad_samples {
    uint64_t *named;              /* bits: training samples that were reported */
    int64_t eval[CO_SPLIT_COUNT]; /* how many of an evaluation were reported */
    bool changed;                 /* the file that ended the run was changed, not lost */
};
void report_bad_step(const struct run *run, struct bad_samples *known, int64_t step, uint64_t bad);
void report_bad_eval(const struct run *run, struct bad_samples *known, const co_eval_result *eval);
/* A unit ended the run because of them: into the blame. */
void blame_bad_samples(const struct run *run, struct bad_samples *known, const unit *failed, uint64_t bad);

/* --- not_finite.c: losses and gradients that are not finite --------------------------------------------- */
void blame_not_finite(const struct run *run, int64_t step, int slice);
void report_skipped(const struct run *run, int64_t step, int slice, bool empty); /* empty: nothing in it counted */

/* --- hosts.c: this host among others -------------------------------------------------------------------- */
enum { CARRIER_DEATHS = 5 }; /* a carrier that dies more often is not replaced: this host leaves */
struct speed_marks {         /* hosts_speed.c: counters when this host's speed was measured last */
    uint64_t t_ns;           /* 0: never */
    uint64_t leaves, compute_ns, input_ns, ran_ns, queued_ns, ticks, stolen;
};
struct hosts {
    struct child child; /* the carrier; pid 0: none yet */
    struct carry carry;
    int socket, roster_fd, id;
    uint32_t number; /* of the view, or of the one that is coming */
    bool frozen;     /* it is coming */
    bool waits;      /* too few hosts are left: no view is coming until others join */
    bool leaving;    /* this host was asked to stop while it waited */
    bool writer;     /* this host writes checkpoints */
    bool saved;      /* the last state */
    bool ended;      /* this host's ranks have ended */
    bool over;       /* the roster has let this host go, with `status` */
    bool broken;     /* the roster failed, and will say nothing else: its error was passed on */
    int status, views, deaths;
    uint64_t over_ns;
    int weight; /* how fast this host was when it was measured last: slices in 1000 s; 0: not known */
    struct speed_marks weighed;
    uint64_t offered; /* the last word of ctl->host.unreadable that the roster knows */
    char why[256];    /* what the carrier said last */
    bool wrong;       /* hosts disagree about the weights: nothing more is saved */
    int members;
    char name[CO_MAX_MEMBERS][64];
};

/* --- results.c: what the ranks published ---------------------------------------------------------------- */
enum { STEPS_KEPT = 65536 };
struct results {
    watch seen;      /* after the last evaluation that was read */
    uint32_t joined; /* the control word `joined` that was seen */
    uint64_t last_t_ns, data_wait_ns;
    bool have_t;
    int64_t steps_timed, samples_timed, counted_timed;
    double timed_s;
    double first_cpu_s, end_cpu_s; /* run_cpu_s() after the first step, and after the ranks have ended */
    float *step_ms, *sum_ms;       /* [STEPS_KEPT] */
};

/* --- translate_read.c: the translations of an evaluation ------------------------------------------------ */
/* NULL: this unit made none. */
co_translations *translations_read(const struct run *run, co_split split, uint32_t number);
void translations_free(co_translations *t); /* NULL is fine */

/* --- accidents.c: rehearsed deaths ---------------------------------------------------------------------- */
enum { KILLS_KEPT = 8192 };
struct accidents {
    const struct run *run;
    int64_t kills_left;
    uint64_t next_kill_ns, rng;
    pid_t struck[CO_MAX_SLOTS];     /* whom we killed or stopped last */
    uint64_t open_ns[CO_MAX_SLOTS]; /* when: those after which no step was applied yet */
    int n_open;
    float *recovery_ms; /* [KILLS_KEPT] raw: a median step still in it */
    int n_recoveries;
};
void accidents_turn(struct accidents *state, const co_crew *crew, pid_t saver);
int accidents_timeout_ms(const struct accidents *state);
void accident_struck(struct accidents *state, uint64_t at_ns);
void accident_recovered(struct accidents *state, uint64_t t_ns);

/* --- host_accidents.c: rehearsed accidents of the whole host -------------------------------------------- */
struct supervisor;
void host_accident(const struct supervisor *super, int64_t step); /* after this step */

/* --- deaths.c: ranks that are gone ---------------------------------------------------------------------- */
struct deaths {
    co_death_traces traces;       /* the kernel's counters when the ranks were started */
    uint64_t place[CO_MAX_SLOTS]; /* where each slot died last */
    int count[CO_MAX_SLOTS];      /* how often in a row */
};

/* --- test_best.c: which weights the final test looks at ------------------------------------------------- */
struct best_reader {
    const struct run *run;
    struct child child; /* pid 0: none is under way */
    int pipe, tries;
    int64_t step; /* the best one */
    uint64_t began_ns;
    bool slow_reported;
};
void end_reader(struct best_reader *reader); /* kills the one that is under way */
void choose_test(struct supervisor *super);  /* once the ranks wait for it */

/* --- together ------------------------------------------------------------------------------------------- */
struct supervisor {
    struct run run;
    co_crew *crew;
    struct stop stop;
    co_err lost; /* the run folder is no longer ours: write nothing */
    struct saver saver;
    struct best_reader reader;
    struct bad_samples bad;
    struct results results;
    struct accidents accidents;
    struct deaths deaths;
    struct eval_progress evaluation;
    struct hosts hosts;
    uint64_t ranks_told_ns; /* rank_times.c */
};
void tell_rank_times(struct supervisor *super);   /* rank_times.c */
double run_cpu_s(const struct supervisor *super); /* cpu_time.c: of the supervisor and all ranks, so far */
/* Hands new results to the hooks, and starts a saver where one is wanted. */
void consume_results(struct supervisor *super);
void recall_results(struct supervisor *super); /* the summary's figures, as the checkpoint has them */
void results_close(struct supervisor *super);  /* medians and rates into the summary */
co_verdict rank_died(void *super, const co_death *death); /* of the crew */

#endif
