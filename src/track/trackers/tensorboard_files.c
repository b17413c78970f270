/* tensorboard_files.c -- event files that earlier starts of this run have left.
 *
 * Each start writes a file of its own. Every write to it ends with a mark: "cohort record OF UPTO", OF a hash of the
 * record's first line, UPTO how many bytes of the record are in the event files so far. So the next start knows
 * which lines are missing, and a mark of another run is seen. A writer that was killed may leave records behind the
 * last mark, the last of them cut; the file is cut at the mark, because those lines are written again.
 */
#include "track/trackers/tensorboard_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "track/tfrecord_int.h"

#define MARK "cohort record "

enum {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_SESSION_LOG = 7,
    LOG_STATUS = 1,
    LOG_MSG = 3,
    STATUS_CHECKPOINT = 3
};

void tb_event_add(co_str *out, double t, int64_t step, int field, const co_str *what)
{
    co_str event = {0};

    co_proto_f64(&event, EVENT_TIME, t);
    co_proto_int(&event, EVENT_STEP, step);
    co_proto_text_n(&event, field, co_str_text(what), what->len);
    tfrecord_add(out, co_str_text(&event), event.len);
    out->failed |= event.failed || what->failed;
    co_str_fini(&event);
}

void mark_add(co_str *out, double t, const events_found *upto)
{
    co_str log = {0};
    char text[80];

    snprintf(text, sizeof text, MARK "%016" PRIx64 " %" PRId64, upto->of, upto->upto);
    co_proto_int(&log, LOG_STATUS, STATUS_CHECKPOINT);
    co_proto_text(&log, LOG_MSG, text);
    tb_event_add(out, t, 0, EVENT_SESSION_LOG, &log);
    co_str_fini(&log);
}

/* Is the payload a mark? Its text is the last thing in it. */
static bool read_mark(events_found *out, const char *payload, size_t len)
{
    char text[80];
    uint64_t of;
    int64_t upto;
    const char *at = memmem(payload, len, MARK, strlen(MARK));

    if (!at || len > 200)
        return false;
    size_t n = (size_t)(payload + len - at);
    if (n >= sizeof text)
        return false;
    memcpy(text, at, n);
    text[n] = '\0';
    if (sscanf(text, MARK "%16" SCNx64 " %" SCNd64, &of, &upto) != 2 || upto < 0)
        return false;
    out->of = of;
    out->upto = upto;
    return true;
}

size_t events_last_mark(events_found *out, const char *bytes, size_t len)
{
    size_t at = 0, end = 0, n, payload_len;
    const char *payload;

    while ((n = tfrecord_get(&payload, &payload_len, bytes + at, len - at)) > 0) {
        at += n;
        if (read_mark(out, payload, payload_len))
            end = at;
    }
    return end;
}

static co_err look_into(events_found *out, bool *found, const char *path)
{
    enum { MOST = 1 << 30 };
    char *bytes;
    size_t len;

    CO_TRY(co_fs_read(&bytes, &len, path, MOST));
    size_t end = events_last_mark(out, bytes, len);
    co_free(bytes);
    *found = end > 0;
    if (end == len || truncate(path, (off_t)end) == 0)
        return CO_OK;
    return co_fail(CO_EIO, "truncate %s: %m", path);
}

/* "events.out.tfevents.SECONDS.HOST.PID.N.cohort": SECONDS, or 0 if the name is not one of ours. */
static int64_t seconds_of(const char *name)
{
    static const char head[] = "events.out.tfevents.", tail[] = ".cohort";
    size_t len = strlen(name);
    long long secs = 0;
    char digits[16] = "";

    if (strncmp(name, head, strlen(head)) != 0 || len < strlen(tail) ||
        strcmp(name + len - strlen(tail), tail) != 0)
        return 0;
    snprintf(digits, sizeof digits, "%.*s", (int)strspn(name + strlen(head), "0123456789"),
             name + strlen(head));
    return co_str_to_i64(digits, &secs) && secs > 0 ? secs : 0;
}

co_err events_find(events_found *out, const char *folder)
{
    char **names = NULL;
    size_t n = 0;
    bool found = false;
    co_err err = co_fs_is_dir(folder) ? co_fs_list(&names, &n, folder) : CO_OK;

    *out = (events_found){0};
    for (size_t i = n; i-- > 0 && !err && !found;) { /* the newest first */
        int64_t secs = seconds_of(names[i]);
        if (!secs)
            continue;
        out->last_sec = secs > out->last_sec ? secs : out->last_sec;
        char *path = co_sprintf("%s/%s", folder, names[i]);
        err = path ? look_into(out, &found, path) : CO_ENOMEM;
        co_free(path);
    }
    if (names)
        co_fs_list_free(names, n);
    return err;
}
