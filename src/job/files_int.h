/* files_int.h -- what a job leaves on disk: a folder with a log per worker, merged.log, blame.json. */
#ifndef CO_JOB_FILES_INT_H
#define CO_JOB_FILES_INT_H

#include "base/str.h"
#include "job/job.h"

typedef struct log_file {
    int fd; /* -1: none */
    co_str held;
} log_file;

typedef struct files {
    bool none;   /* log_dir is /dev/null */
    bool kept;   /* log_dir was given, or something must be kept */
    bool broken; /* a write failed: reported once, then no more files */
    char *temp;  /* the folder to remove at the end, or NULL */
    char *run;   /* <log_dir>/<run_id>_<random> */
    char *attempt;
    log_file merged;
    const char *host;
    char broken_why[256]; /* the reason, until it is reported; then "" */
    /* Called with whole lines of merged.log as they are written; NULL: nobody wants them. */
    void (*share)(void *ctx, const char *text, size_t n);
    void *share_ctx;
} files;

co_err files_open(files *f, const co_job_spec *spec, const char *host);
co_err files_attempt(files *f, int restarts, int nproc);            /* folders of a round */
char *files_path(const files *f, int local_rank, const char *name); /* caller's; NULL: no files */
void files_log_open(files *f, log_file *l, int local_rank, const char *name);
void files_log_bytes(files *f, log_file *l, const char *bytes, size_t n);
void files_merge_line(files *f, int rank, int64_t clock_offset_ns, const char *text, size_t len);
/* A line of the launcher itself: "begins: ...", "cause: ...", and at last "ends: ...". */
void files_merge_note(files *f, int64_t clock_offset_ns, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "TIME [HOST:RANK] ", of now. */
void files_line_head(co_str *out, const char *host, int rank, int64_t clock_offset_ns);
void files_log_push(files *f, log_file *l);
void files_log_close(files *f, log_file *l);
void files_close(files *f, bool keep); /* removes the temporary folder unless it holds something to keep */

#endif
