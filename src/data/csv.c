/* csv.c -- reads a table of text line by line and cuts the lines into fields.
 *
 * The buffer has room for two lines of the greatest length, so a line always lies in one piece. Fields are
 * cut in place: separators become NUL, quoted fields move to the left by their quotes. A quoted field must
 * end on its own line. Nothing is allocated after csv_open. Cost: about 300 MB/s of ratings.
 */
#include "data/csv_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { ROOM = 2 * CSV_LINE };

co_err csv_open(csv *table, packed *in, const char *sep, bool quotes, co_sha256 *hash)
{
    *table = (csv){.in = in, .sep = sep, .quotes = quotes, .hash = hash, .buffer = co_alloc(ROOM)};
    return table->buffer ? CO_OK : CO_ENOMEM;
}

void csv_close(csv *table)
{
    packed_close(table->in);
    co_free(table->buffer);
    *table = (csv){0};
}

co_err csv_fail(const csv *table, const char *fmt, ...)
{
    char text[768];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return co_fail(CO_EINPUT, "%s, line %llu: %s", packed_path(table->in), (unsigned long long)table->line,
                   text);
}

/* Moves what is left to the front and fills the rest of the buffer. */
static co_err refill(csv *table)
{
    size_t got;

    table->len -= table->at;
    memmove(table->buffer, table->buffer + table->at, table->len);
    table->at = 0;
    CO_TRY(packed_read(table->in, table->buffer + table->len, ROOM - table->len, &got));
    if (table->hash)
        co_sha256_add(table->hash, table->buffer + table->len, got);
    table->ended = table->len + got < ROOM;
    table->len += got;
    return CO_OK;
}

/* The next line as [*line, *line + *len), without LF or CR; *line = NULL: there is none. */
static co_err take_line(csv *table, char **line, size_t *len)
{
    char *newline = memchr(table->buffer + table->at, '\n', table->len - table->at);

    if (!newline && !table->ended) {
        CO_TRY(refill(table));
        newline = memchr(table->buffer + table->at, '\n', table->len - table->at);
    }
    *line = NULL;
    if (table->at == table->len)
        return CO_OK;
    table->line++;
    char *from = table->buffer + table->at;
    *len = newline ? (size_t)(newline - from) : table->len - table->at;
    if (*len >= CSV_LINE)
        return csv_fail(table, "it has more than %d bytes; is this a table of text?", (int)CSV_LINE);
    table->at += *len + (newline != NULL);
    table->unended = !newline;
    if (memchr(from, 0, *len))
        return csv_fail(table, "it has a NUL byte; is this a table of text?");
    *len -= *len && from[*len - 1] == '\r';
    *line = from;
    return CO_OK;
}

/* Cuts off a field in quotes that begins at `from`; *next is what follows the closing quote. */
static co_err unquote(const csv *table, char *from, char *end, char **next)
{
    char *to = from, *at = from + 1;

    for (; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++) {
        at += *at == '"';
        *to++ = *at;
    }
    if (at == end)
        return csv_fail(table, "a field begins with a quote that is not closed on this line");
    *next = at + 1;
    *to = 0;
    return CO_OK;
}

static co_err cut(csv *table, char *at, char *end)
{
    size_t wide = strlen(table->sep);

    table->n = table->all = 0;
    for (bool more = true; more;) {
        char *field = at, *stop = at;
        if (table->quotes && at < end && *at == '"') {
            CO_TRY(unquote(table, at, end, &stop));
            if (stop < end && strncmp(stop, table->sep, wide) != 0)
                return csv_fail(table, "after the closing quote of field %d comes no '%s'", table->n + 1,
                                table->sep);
        } else {
            char *found = at < end ? memmem(at, (size_t)(end - at), table->sep, wide) : NULL;
            stop = found ? found : end;
        }
        more = stop < end;
        at = more ? stop + wide : stop;
        *stop = 0;
        table->all++;
        if (table->n < CSV_FIELDS)
            table->field[table->n++] = field;
    }
    return CO_OK;
}

co_err csv_next(csv *table, bool *more)
{
    char *line;
    size_t len;

    do {
        CO_TRY(take_line(table, &line, &len));
        if (line && table->line == 1 && len >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
            line += 3;
            len -= 3;
        }
    } while (line && len == 0);
    *more = line != NULL;
    return line ? cut(table, line, line + len) : CO_OK;
}
