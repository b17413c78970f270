/* blame.c -- reports a failure: a paragraph for people, blame.json for programs, and PyTorch's error file if
 * its name is in our environment (a launcher above us reads it). */
#include "job/job_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "proc/blame.h"

static json_t *lines_of(const char *text)
{
    json_t *list = json_array();
    char line[TAIL_WIDTH];

    while (*text) {
        size_t n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        json_array_append_new(list, co_json_string(line));
        text += n + (text[n] == '\n');
    }
    return list;
}

static json_t *text_or_null(const char *text)
{
    return *text ? co_json_string(text) : json_null();
}

static json_t *blame_json(const job *j, const co_failure *f)
{
    char date[64];

    co_date(date, sizeof date, "%Y-%m-%dT%H:%M:%S%z", (double)f->when_ns * 1e-9);
    json_t *v = json_pack("{s:o, s:i, s:i, s:i, s:i}", "host", co_json_string(f->host), "host_rank",
                          f->host_rank, "rank", f->rank, "local_rank", f->local_rank, "pid", f->pid);
    if (!v)
        return NULL;
    json_object_set_new(v, "how", text_or_null(f->how));
    json_object_set_new(v, "exit_status",
                        WIFEXITED(f->status) ? json_integer(WEXITSTATUS(f->status)) : json_null());
    json_object_set_new(v, "signal", WIFSIGNALED(f->status) ? json_integer(WTERMSIG(f->status)) : json_null());
    json_object_set_new(v, "advice", text_or_null(f->advice));
    json_object_set_new(v, "when", json_string(date));
    json_object_set_new(v, "when_s", json_real((double)f->when_ns * 1e-9));
    json_object_set_new(v, "restarts", json_integer(j->round.is.restarts));
    json_object_set_new(v, "world_size", json_integer(j->round.is.world));
    json_object_set_new(v, "program", text_or_null(j->spec->terms.program));
    json_object_set_new(v, "last_lines", lines_of(f->last));
    return v;
}

/* The path of the blame.json that was written, owned by the caller; NULL: none was written. */
static char *write_blame(job *j, const co_failure *f)
{
    if (j->files.none || j->files.broken ||
        co_blame_write_take(j->files.run, j->spec->terms.run_id, blame_json(j, f)) != CO_OK)
        return NULL;
    j->verdict.kept = true;
    return co_sprintf("%s/blame.json", j->files.run);
}

/* Writes TORCHELASTIC_ERROR_FILE in the format of PyTorch's own launcher. */
static void write_error_file(const co_failure *f)
{
    const char *path = getenv("TORCHELASTIC_ERROR_FILE");
    char stamp[32];

    if (!path || !*path)
        return;
    snprintf(stamp, sizeof stamp, "%lld", (long long)(f->when_ns / 1000000000));
    json_t *v = json_pack("{s:{s:o, s:i, s:{s:o, s:s}}}", "message", "message", co_json_string(f->how),
                          "errorCode", WIFEXITED(f->status) ? WEXITSTATUS(f->status) : -WTERMSIG(f->status),
                          "extraInfo", "py_callstack", co_json_string(f->last), "timestamp", stamp);
    char *text = v ? co_json_text(v) : NULL;
    if (text)
        co_fs_write_atomic(path, text, strlen(text)); /* if it fails, our exit status still tells */
    co_free(text);
    json_decref(v);
}

static void add_last_lines(co_str *s, const char *last)
{
    if (!*last)
        return;
    co_str_add(s, "\n  its last lines:");
    while (*last) {
        size_t n = strcspn(last, "\n");
        co_str_addf(s, "\n  | %.*s", (int)n, last);
        last += n + (last[n] == '\n');
    }
}

void blame(job *j, const co_failure *f, const char *next)
{
    co_str s = {0};
    char date[32];

    if (j->verdict.said)
        return;
    j->verdict.said = true;
    j->verdict.blame_ns = 0;
    char *path = write_blame(j, f);
    if (f->host_rank == j->round.is.my_host)
        write_error_file(f);
    co_date(date, sizeof date, "%H:%M:%S", (double)f->when_ns * 1e-9);
    if (f->rank >= 0)
        co_str_addf(&s, "cohort: rank %d on %s (local rank %d, pid %d) %s, at %s", f->rank, f->host,
                    f->local_rank, f->pid, f->how, date);
    else
        co_str_addf(&s, "cohort: host %s %s, at %s", f->host, f->how, date);
    files_merge_note(&j->files, co_roster_clock_offset(j->roster), "cause%s",
                     co_str_text(&s) + strlen("cohort"));
    add_last_lines(&s, f->last);
    if (f->advice[0])
        co_str_addf(&s, "\n  advice: %s", f->advice);
    if (next && *next)
        co_str_addf(&s, "\n  next: %s", next);
    if (path)
        co_str_addf(&s, "\n  written to %s", path);
    if (!j->spec->hushed || j->verdict.crash_status) /* no other host knows about a crash */
        co_screen_say(&j->screen, co_str_text(&s));
    co_str_fini(&s);
    co_free(path);
}
