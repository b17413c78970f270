/* logs_int.h -- the parts of reading logs: logs/find.c which files, logs/file.c one of them, logs/merge.c all
 * as one stream. */
#ifndef CO_JOB_LOGS_INT_H
#define CO_JOB_LOGS_INT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "job/logs.h"

/* --- find.c -------------------------------------------------------------------------------------------- */
typedef struct found {
    char **paths; /* merged.log files */
    int n;
    bool named; /* the argument is a file */
} found;
/* The files that an argument of `cohort logs` names (NULL: no argument). Free them with found_free. */
co_err logs_find(found *out, const char *word);
void found_free(found *f);

/* --- file.c: one merged.log ---------------------------------------------------------------------------- */
enum { RANGES = 64 };
typedef struct wanted { /* which co_lines */
    const char *host;   /* NULL: all */
    char since[CO_STAMP];
    int n; /* ranges of ranks; 0: all ranks and the launcher */
    struct {
        int from, to;
    } range[RANGES];
} wanted;
co_err wanted_ranks(wanted *w, const char *text);

typedef struct log_source {
    char *path;
    char me[CO_HOST_NAME]; /* this host */
    bool foreign;          /* a line of a job.log that another host wrote */
    bool loose;            /* a job.log: a line may stand after lines that are seconds later */
    char after[CO_STAMP];  /* only lines later than this; "": all */
    int fd;
    char *buf; /* [SOURCE_ROOM] */
    size_t start, len;
    off_t at;         /* offset in the file of the byte after buf */
    co_log_line line; /* the next wanted line, if pending */
    bool pending;
    uint64_t read_ns; /* when it was read */
    co_log_line last; /* the last line with a stamp; lines without one belong to it */
    int rank[2];      /* the lowest and highest that were read; -1: none */
    bool here;        /* a line of this host was read */
    bool torn;        /* the last line that was read has no newline */
    bool ended;       /* its last line was read */
    bool gone;        /* its launcher is gone and wrote no last line */
} log_source;

/* The parts of a line of merged.log; false: it is not one. */
bool log_line_parse(co_log_line *out, const char *p, size_t n);
co_err source_open(log_source *s, const char *path);
void source_close(log_source *s);
/* The next wanted line becomes pending, if there is one. `whole`: text without a newline does not count as a
 * line yet.
 */
co_err source_next(log_source *s, const wanted *w, bool whole);
co_err source_since(log_source *s, const char *since); /* moves to that time or shortly before it */
co_err source_tail(log_source *s, const wanted *w, long long most,
                   long long *n); /* moves to the start of the last `most` lines; *n: how many there are */
/* The first and last stamp of a file, and its host. A file that is still written has no last stamp; an empty
 * file has its date as stamp. */
co_err source_span(char first[CO_STAMP], char last[CO_STAMP], char host[CO_HOST_NAME], const char *path);
void source_look(log_source *s); /* is its launcher alive? Sets gone */

#endif
