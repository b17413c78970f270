/* events.c -- events.jsonl: one line per event, appended; nothing in it is ever changed.
 *
 * Lines are collected in memory and written together. A full disk may take only part of a write; the rest
 * stays in memory and the next write continues in the middle of the line, so the file ends up whole. If a
 * crash cuts a line, the next start ends it with a newline, and readers skip it. While the disk takes
 * nothing, up to 1 MiB of events is kept; later ones are only counted, and the count is recorded as an event
 * of its own.
 */
#include "track/track_int.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"

/* A line that a crash cut is closed with a newline. */
co_err co_events_open(co_folder *f)
{
    char last = '\n';
    struct stat st = {0};
    int fd;

    if (f->events_fd >= 0)
        return CO_OK;
    CO_TRY(co_folder_append(f, "events.jsonl", &fd));
    if (fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n' &&
        write(fd, "\n", 1) != 1) {
        close(fd);
        return co_fail(CO_EIO, "write %s/events.jsonl: %m", f->path);
    }
    f->events_fd = fd;
    f->old_bytes = st.st_size;
    return CO_OK;
}

/* Writes what it can of the pending bytes and drops that much of them. */
static co_err write_pending(co_folder *f)
{
    size_t done = 0;
    co_err err = CO_OK;
    while (done < f->pending.len) {
        ssize_t n = write(f->events_fd, f->pending.p + done, f->pending.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            err = co_fail(CO_EIO, "write %s/events.jsonl: %m", f->path);
            break;
        }
        done += (size_t)n;
    }
    if (done) {
        memmove(f->pending.p, f->pending.p + done, f->pending.len - done);
        f->pending.len -= done;
        f->pending.p[f->pending.len] = '\0';
    }
    return err;
}

/* Appends a line to the pending bytes, or counts it as lost if they are too many. Takes `line` (may be
 * NULL). */
static void append(co_folder *f, char *line)
{
    size_t len = line ? strlen(line) : 0;
    if (!line || f->pending.len + len + 1 > EVENTS_MOST) {
        f->lost++;
    } else {
        size_t before = f->pending.len;
        co_str_addn(&f->pending, line, len);
        co_str_add(&f->pending, "\n");
        if (f->pending.failed) { /* drop the half line; a later, shorter event may fit */
            f->pending.failed = false;
            f->pending.len = before;
            f->lost++;
        }
    }
    co_free(line);
}

static void add_value(co_str *s, double x)
{
    if (isfinite(x))
        co_str_addf64(s, x);
    else
        co_str_add(s, isnan(x) ? "\"nan\"" : x > 0 ? "\"inf\"" : "\"-inf\"");
}

static char *scalar_line(int64_t step, const char *name, double value)
{
    co_str s = {0};
    json_t *text = json_string(name);
    char *quoted = text ? co_json_text(text) : NULL;
    json_decref(text);
    if (!quoted)
        return NULL;
    co_str_addf(&s, "{\"step\":%lld,\"name\":%s,\"value\":", (long long)step, quoted);
    co_free(quoted);
    add_value(&s, value);
    co_str_addf(&s, ",\"t\":%.3f}", co_wall_s());
    char *line = co_str_take(&s);
    co_str_fini(&s);
    return line;
}

/* Writes the pending bytes once there are many, unless the disk is known to refuse them. */
static void make_room(co_folder *f)
{
    if (f->pending.len > EVENTS_BUFFER && !f->disk_fails)
        (void)co_events_flush(f);
}

void co_event_scalar(co_folder *f, int64_t step, const char *name, double value)
{
    append(f, scalar_line(step, name, value));
    make_room(f);
}

void co_event_json(co_folder *f, json_t *take)
{
    char t[64], *text = NULL, *line = NULL;
    CO_ASSERT(!take || json_is_object(take), "an event is a JSON object");
    if (take && json_object_del(take, "t") <= 0)
        text = co_json_text(take);
    if (text) {
        size_t len = strlen(text);
        text[len - 1] = '\0'; /* the closing brace: the time goes before it */
        snprintf(t, sizeof t, "%s\"t\":%.3f}", len > 2 ? "," : "", co_wall_s());
        line = co_sprintf("%s%s", text, t);
        co_free(text);
    }
    json_decref(take);
    append(f, line);
    make_room(f);
}

void co_event_text(co_folder *f, const char *object, size_t len)
{
    bool whole = len > 2 && object[0] == '{' && object[len - 1] == '}';

    append(f, whole ? co_sprintf("%.*s,\"t\":%.3f}", (int)len - 1, object, co_wall_s()) : NULL);
    make_room(f);
}

/* Logs a disk that fails, and a disk that works again, once each. */
static void log_change(co_folder *f, co_err err)
{
    if (err && !f->disk_fails)
        co_log_say(CO_LOG_WARN, "%s; up to 1 MiB of events is kept in memory and tried again", co_errmsg());
    if (!err && f->disk_fails)
        co_log_say(CO_LOG_INFO, "%s/events.jsonl can be written again; %lld events were lost", f->path,
                   (long long)f->lost);
    f->disk_fails = err != CO_OK;
}

static co_err flush_pending(co_folder *f)
{
    co_err err = co_events_open(f);
    if (!err)
        err = write_pending(f);
    if (!err && f->lost) {
        append(f, co_sprintf("{\"name\":\"events_lost\",\"value\":%lld,\"t\":%.3f}", (long long)f->lost,
                             co_wall_s()));
        err = write_pending(f);
    }
    log_change(f, err);
    if (!err)
        f->lost = 0;
    return err;
}

co_err co_events_flush(co_folder *f)
{
    CO_TRY(folder_is_ours(f));
    return f->pending.len || f->lost ? flush_pending(f) : CO_OK;
}

int co_folder_settle_fd(const co_folder *f)
{
    return f->events_fd;
}

co_err co_folder_settle(const co_folder *f)
{
    if (f->events_fd >= 0 && fdatasync(f->events_fd) != 0)
        return co_fail(CO_EIO, "sync %s/events.jsonl: %m", f->path);
    CO_TRY(co_folder_sync(f));
    CO_TRY(lease_is_ours(f->path, f->run_id));
    return f->second ? lease_is_ours(f->second, f->run_id) : CO_OK;
}

void events_close(co_folder *f)
{
    (void)co_events_flush(f);
    if (f->events_fd < 0)
        return;
    fdatasync(f->events_fd);
    close(f->events_fd);
    f->events_fd = -1;
}
