/* track_int.h -- what the files of this room share. */
#ifndef CO_TRACK_TRACK_INT_H
#define CO_TRACK_TRACK_INT_H

#include <limits.h>
#include <sys/types.h>

#include "base/str.h"
#include "track/track.h"
#include "track/tracker.h"

/* process.c: identifies a process for good. A pid alone may be used again; with the start time, the boot
 * of the host and the pid namespace it is unique. */
typedef struct process_id {
    char host[HOST_NAME_MAX + 1], boot[64], machine[64], pid_ns[64];
    long long pid, start; /* start: clock ticks after boot, field 22 of /proc/PID/stat */
} process_id;

typedef enum {
    PROCESS_DEAD,
    PROCESS_ALIVE,
    PROCESS_ELSEWHERE /* on another host or in another pid namespace */
} process_state;

void process_self(process_id *out);
process_state process_look(const process_id *p);
json_t *process_to_json(const process_id *p); /* NULL if memory is out */
bool process_from_json(process_id *out, const json_t *v);

/* flow.c: bytes that disks and network interfaces have moved; nan: not known */
typedef struct co_flow flow;
typedef co_flow_marks flow_marks;
void flow_disks(const char *diskstats, flow *out); /* in: read */
void flow_net(const char *net_dev, flow *out);
void flow_look(flow_marks *then, double secs, co_sample *out); /* rates since then */

/* gpu.c: the version of the driver, and a line about a process; "" where it is not known */
void gpu_driver(char *out, size_t size);

/* lease.c */
/* `key` is what chooses the folder ("run.dir"), for the message when another holds it. */
co_err lease_take(const char *dir, const char *key, const char *run_id);
void lease_give_back(const char *dir, const char *run_id);
/* Shows other hosts that we are alive; fails if the lease is no longer ours. */
co_err lease_renew(const char *dir, const char *run_id);
/* CO_EFAIL if another run holds the folder, or has held it since, or the folder is gone; changes nothing.
 * Any thread or process may ask. */
co_err lease_is_ours(const char *dir, const char *run_id);
/* Is the file at `path`, called `name`, the .lease-ID of a starter that is dead? */
co_err lease_is_left_over(bool *yes, const char *path, const char *name);

/* sweep.c: removes temporary files of killed runs; the lease is ours. Fails only if memory is out. */
co_err sweep_run_folder(const char *dir);

/* reader.c: the lines of the record, while it grows. One thread per reader. */
typedef struct record_reader record_reader;
co_err reader_open(record_reader **out, const char *dir); /* the run folder; events.jsonl need not be there yet */
void reader_close(record_reader *r);                      /* NULL is fine */
/* The next whole line, without its newline, and where it begins; valid until the next call. *line is NULL
 * if there is none yet. */
co_err reader_next(record_reader *r, const char **line, size_t *len, int64_t *offset);

/* tracker.c: gives a scalar of the record its name in that family */
co_err tracker_rename(json_t *line, co_names family);

/* trackers/ */
extern const co_tracker_def csv_def, none_def, tensorboard_def, prometheus_def, wandb_def, mlflow_def;

enum { EVENTS_BUFFER = 64 << 10, EVENTS_MOST = 1 << 20 };

struct co_folder {
    char *path, *made_from; /* made_from: the topmost folder that we made; NULL if it was there */
    char *second;           /* another folder that we lease (co_folder_lease_too); NULL: none */
    dev_t device;           /* which folder `path` was when we opened it */
    ino_t inode;
    char run_id[64];
    double renewed_s;
    pid_t renewer; /* the process that renews the lease of `second`; 0: none is at it */
    int renewer_fd;
    bool second_lost;  /* a renewer found the lease to be another's */
    bool taken;        /* another holds the lease now, or the folder is gone: not one more byte from us */
    int events_fd;     /* -1: not open yet */
    int64_t old_bytes; /* of events.jsonl, when it was opened */
    co_str pending;    /* events not yet in the file */
    bool disk_fails;   /* the last write failed, and that was logged */
    int64_t lost;      /* events dropped since */
    /* Files of a new run that were written and not synced, so that the first step does not wait for the
     * disk. The saver syncs them before it publishes a checkpoint: until then a crash loses nothing that
     * could be continued. */
    char unsynced[8][24];
    int n_unsynced;
};

void events_close(co_folder *f); /* flushes as far as possible */
/* CO_EFAIL if the folder is gone, or the lease is lost, which is renewed every few seconds. */
co_err folder_is_ours(co_folder *f);

#endif
