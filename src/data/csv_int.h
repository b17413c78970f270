/* csv_int.h -- tables of text: a line is a row, and a separator parts its fields. */
#ifndef CO_DATA_CSV_INT_H
#define CO_DATA_CSV_INT_H

#include "base/hash.h"
#include "data/images_int.h"

enum { CSV_FIELDS = 32, CSV_LINE = 64 << 10 }; /* most fields of a line, and most bytes */

typedef struct csv {
    packed *in;
    const char *sep; /* one or two characters */
    bool quotes;     /* a field may be in double quotes, "" inside stands for one (RFC 4180) */
    co_sha256 *hash; /* of all bytes read; NULL: none is made */
    uint64_t line;   /* number of the line in hand; 1 for the first */
    char *field[CSV_FIELDS];
    int n;          /* fields of the line in hand; those past CSV_FIELDS are dropped */
    int all;        /* fields of the line in hand, the dropped ones too */
    bool unended;   /* the line in hand has no line end: it is the file's last */
    char *buffer;   /* [2 * CSV_LINE] */
    size_t at, len; /* what is in it and not yet given out */
    bool ended;
} csv;

/* `in` is taken over: csv_close closes it. Call csv_close also after a failure. */
co_err csv_open(csv *table, packed *in, const char *sep, bool quotes, co_sha256 *hash);
/* Goes on to the next line that is not empty; *more = false: there is none. The fields end with NUL and live
 * until the next call. A byte order mark and a CR before the LF are dropped. CO_EINPUT names file and line.
 * */
co_err csv_next(csv *table, bool *more);
void csv_close(csv *table);
/* Fails with "FILE, line N: " and this text. */
co_err csv_fail(const csv *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
