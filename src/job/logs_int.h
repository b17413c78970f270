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
    bool named; /* the word is a file */
} found;
/* The files that a word means (NULL: none was given). found_free. */
co_err logs_find(found *out, const char *word);
void found_free(found *f);

/* --- file.c: one merged.log ---------------------------------------------------------------------------- */
enum { RANGES = 64 };
typedef struct wanted { /* which co_lines */
    const char *host;   /* NULL: all */
    char since[CO_STAMP];
    int n; /* ranges of ranks; 0: all, and what the launcher says */
    struct {
        int from, to;
    } range[RANGES];
} wanted;
co_err wanted_ranks(wanted *w, const char *text);

typedef struct log_source {
    char *path;
    char me[CO_HOST_NAME]; /* this host */
    bool foreign;          /* of a job.log: another host wrote it */
    bool loose;            /* likewise: lines may stand behind later ones, by seconds */
    char after[CO_STAMP];  /* "", or: only lines later than that */
    int fd;
    char *buf; /* [SOURCE_ROOM] */
    size_t start, len;
    off_t at;         /* of the file, after what is in buf */
    co_log_line line; /* the next one that is wanted, if pending */
    bool pending;
    uint64_t read_ns; /* when it was read */
    co_log_line last; /* where a line without a stamp of its own belongs */
    int rank[2];      /* the lowest and highest that were read; -1: none */
    bool here;        /* a line of this host was read */
    bool torn;        /* the last line that was read has no end */
    bool ended;       /* its last line was read */
    bool gone;        /* its launcher is, without a last line */
} log_source;

/* The parts of a line of merged.log; false: it is not one. */
bool log_line_parse(co_log_line *out, const char *p, size_t n);
co_err source_open(log_source *s, const char *path);
void source_close(log_source *s);
/* The next wanted line becomes pending, if there is one. `whole`: what has no newline yet is not a line yet.
 * */
co_err source_next(log_source *s, const wanted *w, bool whole);
co_err source_since(log_source *s, const char *since); /* goes to about there, not after it */
co_err source_tail(log_source *s, const wanted *w, long long most,
                   long long *n); /* to where the last `most` begin; how many there are */
/* First and last stamp of a file (no end while it is written); that of the file's date if it is empty. Its
 * host. */
co_err source_span(char first[CO_STAMP], char last[CO_STAMP], char host[CO_HOST_NAME], const char *path);
void source_look(log_source *s); /* is its launcher alive? Sets gone */

#endif
