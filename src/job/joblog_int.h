/* joblog_int.h -- job.log: the lines of all hosts, on the host that keeps the roster. */
#ifndef CO_JOB_JOBLOG_INT_H
#define CO_JOB_JOBLOG_INT_H

#include "job/files_int.h"
#include "term/screen.h"

typedef struct mixed {
    size_t at, len; /* the line's place in `text`, with its newline */
    uint64_t came_ns;
} mixed;

typedef struct joblog {
    const co_job_spec *spec;
    files *files;
    co_roster *roster;
    co_screen *screen;

    log_file file;
    co_str text;
    mixed *list; /* in the order of arrival */
    int n, room;
    uint64_t oldest_ns, wrote_ns; /* when the oldest of them came; when lines were last written */
    co_str received;              /* scratch: text from other hosts */
    long long unsent;             /* lines of this host that could not be sent; job.log does not say so yet */
    uint64_t tried_ns;            /* when we last tried to send them */
    uint64_t over_ns;             /* since when we wait for the others' last lines; 0: not yet */
    bool wait_said;               /* we have said that we wait */
    bool hurries;                 /* a second signal came: do not wait */
} joblog;

/* All are borrowed until joblog_close. */
void joblog_init(joblog *l, const co_job_spec *spec, files *files, co_roster *roster, co_screen *screen);
/* Opens job.log if this host keeps the roster of several hosts and there is a --log-dir; sets it aside if
 * another host keeps the roster now. */
void joblog_open(joblog *l, long long round);
void joblog_receive(joblog *l);     /* takes the lines of other hosts */
int joblog_due_ms(const joblog *l); /* -1: nothing waits */
void joblog_write(joblog *l, bool all);
bool joblog_settled(joblog *l); /* the job is over: have all hosts sent their last lines? */
/* Takes what other hosts send at the end. A host without a job.log sends nothing after it. */
void joblog_finish(joblog *l);
void joblog_close(joblog *l);

#endif
