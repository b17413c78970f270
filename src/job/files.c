/* files.c -- what a job leaves on disk: a folder in torchrun's layout.
 *
 *     <log_dir>/<run_id>_<8 random>/merged.log                    every line of this host, in time order
 *                                  /job.log                       the lines of all hosts (roster's host)
 *                                  /blame.json                    when something failed
 *                                  /attempt_<restarts>/<local rank>/{stdout.log,stderr.log,error.json}
 *
 * Without a log_dir the folder is in $TMPDIR and is removed with the job, unless it holds a blame.json or
 * files that the user wants. If the disk is full, no more files are written, the user is told once, and the
 * job goes on.
 */
#include "job/files_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

enum { FILE_HELD = 1 << 16 };

static void random_name(char out[9])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    unsigned char r[8];

    if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        for (size_t i = 0; i < sizeof r; i++)
            r[i] = (unsigned char)((unsigned long)t.tv_nsec >> i ^ (unsigned long)getpid());
    }
    for (size_t i = 0; i < sizeof r; i++)
        out[i] = letters[r[i] % (sizeof letters - 1)];
    out[8] = '\0';
}

/* A new folder <dir>/<name>_<random>; *out is the caller's. */
static co_err new_folder(char **out, const char *dir, const char *name, mode_t mode)
{
    char end[9], clean[128];

    snprintf(clean, sizeof clean, "%s", name);
    for (char *p = clean; *p; p++)
        if (*p == '/')
            *p = '_';
    for (int i = 0; i < 100; i++) {
        random_name(end);
        char *path = co_sprintf("%s/%s_%s", dir, clean, end);
        if (!path)
            return CO_ENOMEM;
        if (mkdir(path, mode) == 0) {
            *out = path;
            return CO_OK;
        }
        int why = errno;
        co_free(path);
        errno = why;
        if (why != EEXIST)
            return co_fail(CO_EIO, "make a folder for logs in %s: %m", dir);
    }
    return co_fail(CO_EIO, "make a folder for logs in %s: all names are taken", dir);
}

static void breaks(files *f, const char *what)
{
    if (f->broken)
        return;
    f->broken = true;
    snprintf(f->broken_why, sizeof f->broken_why, "%s: %s; the job goes on without log files", what,
             strerror(errno));
}

/* A folder could not be made. If the disk is full, the job goes on without files; any other reason is the
 * user's mistake. */
static co_err do_without(files *f, co_err err, const char *where)
{
    if (err == CO_ENOMEM)
        return err;
    if (f->kept && errno != ENOSPC && errno != EDQUOT)
        return co_fail_in(CO_EINPUT, "log files");
    breaks(f, where);
    co_errclear();
    return CO_OK;
}

/* Chooses the folder in which the run's folder is made: *where. */
static co_err make_run_folder(files *f, const co_job_spec *spec, const char **where)
{
    const char *tmp = getenv("TMPDIR");

    *where = spec->log_dir ? spec->log_dir : tmp && *tmp ? tmp : "/tmp";
    if (spec->log_dir)
        CO_TRY(co_fs_mkdirs(spec->log_dir));
    else
        CO_TRY(new_folder(&f->temp, *where, "cohort", 0700)); /* only the owner may read what workers print */
    return new_folder(&f->run, spec->log_dir ? spec->log_dir : f->temp, spec->terms.run_id, 0777);
}

co_err files_open(files *f, const co_job_spec *spec, const char *host)
{
    const char *where;

    *f = (files){.merged.fd = -1, .host = host, .kept = spec->log_dir != NULL};
    if (spec->log_dir && strcmp(spec->log_dir, "/dev/null") == 0) {
        f->none = true;
        return CO_OK;
    }
    for (int i = 0; i < spec->terms.nproc; i++)
        f->kept |= (spec->redirects && spec->redirects[i]) || (spec->tee && spec->tee[i]);
    co_err err = make_run_folder(f, spec, &where);
    if (err)
        return do_without(f, err, where);
    if (spec->log_dir) {
        char *path = co_sprintf("%s/merged.log", f->run);
        f->merged.fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
        if (f->merged.fd >= 0)
            flock(f->merged.fd, LOCK_EX | LOCK_NB); /* the lock shows readers that we are alive */
        co_free(path);
    }
    return CO_OK;
}

co_err files_attempt(files *f, int restarts, int nproc)
{
    co_free(f->attempt);
    f->attempt = NULL;
    if (f->none || f->broken)
        return CO_OK;
    char *attempt = co_sprintf("%s/attempt_%d", f->run, restarts);
    co_err err = attempt ? CO_OK : CO_ENOMEM;
    /* a host that joins begins a round, not an attempt: the files of the attempt continue */
    for (int i = 0; i < nproc && !err; i++) {
        char *dir = co_sprintf("%s/%d", attempt, i), *old = dir ? co_sprintf("%s/error.json", dir) : NULL;
        err = old ? co_fs_mkdirs(dir) : CO_ENOMEM;
        int why = errno;
        if (!err)
            unlink(old); /* the previous round's error file */
        co_free(dir);
        co_free(old);
        errno = why;
    }
    if (err) {
        err = do_without(f, err, f->run);
        co_free(attempt);
        return err;
    }
    f->attempt = attempt;
    return CO_OK;
}

char *files_path(const files *f, int local_rank, const char *name)
{
    return f->none || !f->attempt ? NULL : co_sprintf("%s/%d/%s", f->attempt, local_rank, name);
}

void files_log_open(files *f, log_file *l, int local_rank, const char *name)
{
    char *path = f->broken ? NULL : files_path(f, local_rank, name);

    l->fd = -1;
    if (!path)
        return;
    l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (l->fd < 0)
        breaks(f, path);
    co_free(path);
}

void files_log_push(files *f, log_file *l)
{
    size_t done = 0;

    if (l == &f->merged && f->share && l->held.len)
        f->share(f->share_ctx, l->held.p, l->held.len);
    while (l->fd >= 0 && !f->broken && done < l->held.len) {
        ssize_t n = write(l->fd, l->held.p + done, l->held.len - done);
        if (n < 0 && errno != EINTR)
            breaks(f, f->run);
        done += n > 0 ? (size_t)n : 0;
    }
    co_str_clear(&l->held);
}

void files_log_bytes(files *f, log_file *l, const char *bytes, size_t n)
{
    if (l->fd < 0 || f->broken)
        return;
    co_str_addn(&l->held, bytes, n);
    if (l->held.len > FILE_HELD)
        files_log_push(f, l);
}

void files_line_head(co_str *out, const char *host, int rank, int64_t clock_offset_ns)
{
    struct timespec t;
    struct tm tm;
    char date[32];

    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ns = t.tv_sec * INT64_C(1000000000) + t.tv_nsec - clock_offset_ns;
    time_t s = (time_t)(ns / 1000000000);
    gmtime_r(&s, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    co_str_addf(out, "%s.%06dZ [%s:", date, (int)(ns % 1000000000 / 1000), host);
    if (rank < 0)
        co_str_add(out, "-] ");
    else
        co_str_addf(out, "%d] ", rank);
}

void files_merge_line(files *f, int rank, int64_t clock_offset_ns, const char *text, size_t len)
{
    if (f->merged.fd < 0 || f->broken)
        return;
    files_line_head(&f->merged.held, f->host, rank, clock_offset_ns);
    co_str_addn(&f->merged.held, text, len);
    files_log_bytes(f, &f->merged, "\n", 1);
}

void files_merge_note(files *f, int64_t clock_offset_ns, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    text[strcspn(text, "\n")] = '\0';
    files_merge_line(f, -1, clock_offset_ns, text, strlen(text));
}

void files_log_close(files *f, log_file *l)
{
    files_log_push(f, l);
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    co_str_fini(&l->held);
}

void files_close(files *f, bool keep)
{
    files_log_close(f, &f->merged);
    if (f->temp && !keep && !f->kept)
        co_fs_remove_tree(f->temp);
    co_free(f->temp);
    co_free(f->run);
    co_free(f->attempt);
}
