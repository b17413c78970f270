/* spool.c -- files that are written in memory and brought to the disk by a flush.
 *
 * What a full disk refused stays in memory, in order, and goes out with the next flush: a file never has a
 * gap. A second thread may read what is on the disk: `written` says how much that is.
 */
#include "wandb/wandb_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { PENDING_MOST = 64 << 20 };

co_err spool_open(spool *sp, const char *dir, const char *name)
{
    *sp = (spool){.fd = -1, .path = co_sprintf("%s/%s", dir, name)};
    if (!sp->path)
        return CO_ENOMEM;
    if (unlink(sp->path) != 0 && errno != ENOENT)
        return co_fail(CO_EIO, "unlink %s: %m", sp->path);
    sp->fd = open(sp->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return sp->fd < 0 ? co_fail(CO_EIO, "open %s: %m", sp->path) : CO_OK;
}

void spool_close(spool *sp)
{
    if (sp->path && sp->fd >= 0)
        close(sp->fd);
    co_str_fini(&sp->pending);
    co_free(sp->path);
    *sp = (spool){.fd = -1};
}

co_err spool_flush(spool *sp)
{
    size_t done = 0;

    CO_TRY(co_str_err(&sp->pending));
    while (done < sp->pending.len) {
        ssize_t n = write(sp->fd, sp->pending.p + done, sp->pending.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    int why = errno;
    size_t left = sp->pending.len - done;
    if (done) {
        memmove(sp->pending.p, sp->pending.p + done, left);
        sp->pending.len = left;
        atomic_fetch_add(&sp->written, done);
    }
    errno = why;
    if (left > PENDING_MOST)
        return co_fail(CO_EFAIL, "write %s: %m; %zu MiB wait in memory, and more are not kept", sp->path,
                       left >> 20);
    return left ? co_fail(CO_EIO, "write %s: %m", sp->path) : CO_OK;
}
