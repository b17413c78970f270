/* reader.c -- the lines of a file that another part of the program still appends to.
 *
 * A line counts once its newline is there; what follows the last newline is read again later. Lines of 1 MiB
 * or more are passed over. Memory: 1 MiB, of which
 * ordinary lines use 128 KiB.
 */
#include "track/track_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { LINE_MOST = 1 << 20, READ_MOST = 64 << 10 };

struct record_reader {
    char *path, *buffer; /* [LINE_MOST] */
    int fd;              /* -1: the file is not there yet */
    size_t start, have;  /* buffer[start..have) is unread */
    int64_t offset;      /* of buffer[start] in the file */
    bool skipping;       /* inside a line that is too long */
};

co_err reader_open(record_reader **out, const char *dir)
{
    record_reader *r = co_zalloc(sizeof *r);

    if (!r)
        return CO_ENOMEM;
    r->fd = -1;
    r->path = co_sprintf("%s/events.jsonl", dir);
    r->buffer = co_alloc(LINE_MOST);
    if (!r->path || !r->buffer) {
        reader_close(r);
        return CO_ENOMEM;
    }
    *out = r;
    return CO_OK;
}

void reader_close(record_reader *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    co_free(r->path);
    co_free(r->buffer);
    co_free(r);
}

static void drop(record_reader *r, size_t n)
{
    r->start += n;
    r->offset += (int64_t)n;
}

/* More bytes into the buffer; *n is 0 at the end of the file. */
static co_err fill(record_reader *r, ssize_t *n)
{
    *n = 0;
    if (r->fd < 0)
        r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (r->fd < 0)
        return errno == ENOENT ? CO_OK : co_fail(CO_EIO, "open %s: %m", r->path);
    memmove(r->buffer, r->buffer + r->start, r->have - r->start);
    r->have -= r->start;
    r->start = 0;
    if (r->have == LINE_MOST) {
        r->skipping = true;
        drop(r, r->have);
        r->start = r->have = 0;
    }
    size_t room = LINE_MOST - r->have;
    do
        *n = read(r->fd, r->buffer + r->have, room < READ_MOST ? room : READ_MOST);
    while (*n < 0 && errno == EINTR);
    if (*n < 0)
        return co_fail(CO_EIO, "read %s: %m", r->path);
    r->have += (size_t)*n;
    return CO_OK;
}

co_err reader_next(record_reader *r, const char **line, size_t *len, int64_t *offset)
{
    *line = NULL;
    for (;;) {
        const char *at = r->buffer + r->start, *end = memchr(at, '\n', r->have - r->start);
        if (end) {
            bool whole = !r->skipping;
            *len = (size_t)(end - at);
            *offset = r->offset;
            drop(r, *len + 1);
            r->skipping = false;
            if (whole) {
                *line = at;
                return CO_OK;
            }
            continue;
        }
        ssize_t n;
        CO_TRY(fill(r, &n));
        if (n == 0)
            return CO_OK;
    }
}
