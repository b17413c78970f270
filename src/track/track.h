/* track.h -- the files that a run writes about itself (folder, lease, events), and what it shows while it
 * runs.
 *
 * events.jsonl is the one source: every scalar, checkpoint, recovery as a line
 * {"step":..,"name":..,"value":..,"t":..}; trackers (tracker.h) read it. Only the supervisor writes here.
 */
#ifndef CO_TRACK_TRACK_H
#define CO_TRACK_TRACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

typedef struct co_folder co_folder;

/* Opens (makes, with parents) the run folder `dir`, or logs/<task>/runs/<date_time>/ when dir is NULL, and
 * takes its lease (lease.json: host, pid, process start time, run id). Held by a live process: CO_EINPUT
 * naming it. Not writable: CO_EINPUT with the path. A lease whose holder is dead is taken over. */
co_err co_folder_open(co_folder **out, const char *dir, const char *task);
/* Says early, before anything in the folder is read, that a live process of this host uses it: CO_EINPUT as
 * co_folder_open's. */
co_err co_folder_is_free(const char *dir);
const char *co_folder_path(const co_folder *f);
const char *co_folder_run_id(const co_folder *f);
void co_folder_close(co_folder *f); /* gives the lease back; NULL is fine */
/* Takes the lease of another folder as well (where the checkpoints go): refused, renewed and given back
 * like the first. `key` chooses that folder; the message of a refusal names it. */
co_err co_folder_lease_too(co_folder *f, const char *dir, const char *key);
/* Removes a folder that we made and in which nothing has happened (bad input found late). Closes f. */
void co_folder_discard(co_folder *f);
co_err co_folder_write(co_folder *f, const char *name, const void *bytes, size_t len); /* atomic */
co_err co_folder_write_json(co_folder *f, const char *name, const json_t *v);
/* A file that was not there is synced only now; one that is replaced is synced when it is written. */
co_err co_folder_sync(const co_folder *f);
/* A file of the folder to append to. Links, FIFOs and the like are refused (CO_EINPUT): whoever can write
 * into the folder could otherwise make us write elsewhere, or wait for ever. *fd is the caller's. */
co_err co_folder_append(co_folder *f, const char *name, int *fd);

/* Appends one event; buffered, flushed by co_events_flush (about once a second, and at the end). A failed
 * write (disk full) is kept in memory up to 1 MiB, reported once through the log, and tried again at the next
 * flush. */
void co_event_scalar(co_folder *f, int64_t step, const char *name, double value);
void co_event_json(co_folder *f, json_t *take); /* takes the reference; "t" is added */
/* The same for an object that is text already, on one line: "{...}". The caller vouches that it is JSON. */
void co_event_text(co_folder *f, const char *object, size_t len);
co_err co_events_flush(co_folder *f);
co_err co_events_open(co_folder *f); /* at once instead of at the first flush: refuses as co_folder_append does */
/* Before a checkpoint becomes visible, in any process forked from ours: what was flushed is on the disk,
 * and the folder still belongs to this run. So no checkpoint is ahead of the record, and none appears in
 * another run's folder. */
co_err co_folder_settle(const co_folder *f);
int co_folder_settle_fd(const co_folder *f); /* the descriptor that it uses; -1: none */

/* --- console -----------------------------------------------------------------------------------------------
 */
typedef struct co_console co_console;
/* QUIET shows nothing; IMAGENET no progress but the caller's own lines (co_meters). */
typedef enum {
    CO_CONSOLE_AUTO,
    CO_CONSOLE_PLAIN,
    CO_CONSOLE_BAR,
    CO_CONSOLE_QUIET,
    CO_CONSOLE_IMAGENET
} co_console_style;

typedef struct co_progress {
    int64_t step, steps, epoch, epochs;
    double loss, metric, samples_per_s, eta_s;
    double data_wait;        /* share of the time spent waiting for data; shown above 0.05 */
    const char *metric_name; /* NULL: none */
    int ranks;
    const char *evaluating; /* "validating" or "testing" while that goes on, else NULL */
    double evaluated;       /* share of it that is done */
} co_progress;

co_err co_console_open(co_console **out, int fd, co_console_style style); /* AUTO: a bar if fd is a terminal */
void co_console_close(co_console *c);
bool co_console_is_bar(const co_console *c);
int co_console_width(const co_console *c); /* columns of a line that does not wrap; INT_MAX: no terminal */
/* Called often; draws at most 10 times a second (bar), or one line per second (plain); `now`: in any case. */
void co_console_progress(co_console *c, const co_progress *p, bool now);
void co_console_line(co_console *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* above the bar */

const char *co_time_text(char out[32], double secs); /* "4 s", "2 min 05 s", "2 h 01 min" */

/* --- the lines of PyTorch's ImageNet example ------------------------------------------------------------ */
typedef struct co_meter {
    double last, sum, weight;
} co_meter;
/* Zeroed at the beginning of an epoch. Accuracies are shares, shown as percents. */
typedef struct co_meters {
    co_meter time, data, loss, top1, top5;
} co_meters;
void co_meters_see(co_meters *m, double step_s, double data_s, double loss, double top1, double top5,
                   int64_t samples);
/* `tops`: 0 no accuracy, 1 Acc@1, 2 Acc@5 too. Epochs count from 0, batches from 1. */
void co_meters_train(const co_meters *m, int64_t epoch, int64_t batch, int64_t batches, int tops, co_str *out);
void co_meters_test(const co_meters *m, int64_t batch, int64_t batches, int tops, co_str *out);
void co_meters_summary(double top1, double top5, int tops, co_str *out); /* " * Acc@1 x Acc@5 y" */

/* --- spikes of the loss --------------------------------------------------------------------------------- */
typedef struct co_spikes {
    int64_t seen, told;
    double mean, variance, level;
    double was_mean; /* before the last loss */
} co_spikes;
/* How many deviations this step's loss is above the recent mean, if that is more than `limit` and worth a
 * report; else 0. limit 0: never. */
double co_spikes_see(co_spikes *s, int64_t step, double loss, double limit);

/* --- the machine ---------------------------------------------------------------------------------------- */
enum { CO_UTIL_PROCESSES = 300, CO_MAX_GPUS = 64, CO_GPU_PROCESSES = 64 };
typedef struct co_flow_marks { /* bytes since the machine was booted */
    struct co_flow {
        double in, out;
    } disk, net;
} co_flow_marks;
typedef struct co_util {
    double at_s, busy, all;
    co_flow_marks flow;
    struct {
        int pid;
        char state; /* of its main thread: 'R', 'S', 'T' (stopped) ... */
        double ticks, cpu_percent, memory_mb;
    } known[CO_UTIL_PROCESSES];
    int n_known;
} co_util;
typedef struct co_sample {
    double cpu_percent;     /* of all CPUs of the machine, whoever uses them */
    double run_cpu_percent; /* of this process and its children: 100 is one CPU */
    double memory_mb;       /* of those, what they share counted once; 1e6 bytes */
    double host_memory_percent, load;
    double disk_read_mb_s, disk_write_mb_s; /* all disks of the machine */
    double net_in_mb_s, net_out_mb_s;       /* all its interfaces but loopback */
} co_sample;
/* Use since the last call; nan where it cannot be measured. The first call returns false: it has nothing
 * to compare with. */
bool co_util_look(co_util *u, double now_s, co_sample *out);
/* Of this process or one of its children, at the last call of co_util_look: CPU time (100: one CPU), private
 * memory, and whether it was stopped by a signal. False: there was no such process. */
bool co_util_process(const co_util *u, int pid, double *cpu_percent, double *memory_mb, bool *stopped);
double co_disk_free_mb(const char *dir); /* of the disk that the folder is on; nan: not known */

int co_gpus(void); /* 0 as well if NVIDIA's library is absent */
typedef struct co_gpu {
    char name[96];
    double percent, memory_mb, total_mb; /* nan where it is not known, as all below */
    double temperature_c, power_w, power_limit_w, fan_percent;
    int processes; /* that compute on it; 0 as well if that is not known */
    struct {
        unsigned pid;
        double memory_mb;
    } process[CO_GPU_PROCESSES];
} co_gpu;
bool co_gpu_look(int i, co_gpu *out);
/* A table of all GPUs and of the processes on them, like that of nvidia-smi. False: there are no GPUs. */
bool co_gpu_table(co_str *out);

/* --- runs and launches of this machine, for ps, stop, attach and top ------------------------------------ */
typedef struct co_live_run {
    int pid;
    char run_id[64], dir[1024], task[64];
    double started;   /* wall clock */
    char launch[256]; /* `cohort launch`: its workers and their program; "": a training. It has no folder */
    /* Runs of several hosts. A guest has no folder (dir is ""): another host has the record. */
    bool guest;
    char job[128];         /* the id by which the hosts met; "": one host */
    char record_host[128]; /* the host with the record; "": not known yet, or one host */
    char hosts[4096];      /* JSON, an array of {name, ranks, slices, state}; "": one host */
    int64_t view;
} co_live_run;
co_err co_live_register(const co_folder *f,
                        const char *task); /* a file in $XDG_RUNTIME_DIR/cohort or /tmp/cohort-UID */
co_err co_live_register_guest(const char *job, const char *task);
co_err co_live_register_launch(const char *job, const char *what);
/* Adds to this run's entry which hosts it has now. `hosts` is borrowed. */
co_err co_live_hosts(const char *job, int64_t view, const char *record_host, const json_t *hosts);
void co_live_unregister(void);
/* Live runs of this user, oldest first; files of dead ones are removed. Caller's, co_free. */
co_err co_live_list(co_live_run **out, int *n);
/* Leaves this run's last progress for those who attach to it; reads that of another run, false if there is
 * none. */
void co_live_progress(const co_progress *p);
bool co_live_see(int pid, co_progress *out, char metric_name[16]);
/* The same for what the run takes of its hosts: a JSON array of co_use (use.h). The reader's is the
 * caller's; NULL: there is none. */
void co_live_use(const json_t *hosts);
json_t *co_live_use_of(int pid);

#endif
