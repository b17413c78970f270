/* tensorboard.c -- event files for TensorBoard: tensorboard/events.out.tfevents.* in the run folder, or below
 * logger.tensorboard.dir.
 *
 * A start writes one file:
 *
 *     version | START at the first step to come | lines of the record as Events, in order ... | mark | ... | mark
 *
 * TensorBoard reads the files of a folder one after the other as one run. START makes it drop what an earlier start
 * had written about that step and later ones: a run that was killed records them again. Lines of earlier starts are
 * in earlier files; those that a killed tracker had not written yet are written first (tensorboard_files.c). A
 * continued run may record its first step again (an evaluation at the checkpoint); an equal value is left out.
 *
 * The file grows only in flush, by one write. If that fails, the file is cut to its old length and all is tried
 * again. Memory: the events since the last flush.
 */
#include "track/trackers/tensorboard_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "track/tfrecord_int.h"

enum { PENDING_MOST = 256 << 20 };
enum { EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7, STATUS_START = 1 };

struct tensorboard_cfg {
    char *dir, *name;
};

/* What the record said of the first step before this start: name and value. */
struct told {
    char *name;
    double value;
};

struct writer {
    const co_run_facts *run;
    const struct tensorboard_cfg *cfg;
    char *folder, *path; /* path: of the file; NULL: not made yet */
    int fd;
    off_t size; /* of the file, up to the last mark */
    co_str pending;
    events_found found, mark; /* found: by earlier starts; mark: the next one */
    bool looked;              /* `found` is known */
    struct told *told;
    size_t n_told;
};

static const co_option options[] = {
    {"dir", CO_OPT_STR, offsetof(struct tensorboard_cfg, dir), "null",
     "folder that tensorboard --logdir shows; each run has a folder of its own in it; null: tensorboard/ in "
     "the "
     "run folder",
     .path = true},
    {"name", CO_OPT_STR, offsetof(struct tensorboard_cfg, name), "null",
     "with logger.tensorboard.dir: the run's folder in it; null: as the run folder is called"},
    {0}};

static void tensorboard_close(void *self)
{
    struct writer *w = self;

    if (w->fd >= 0)
        close(w->fd);
    for (size_t i = 0; i < w->n_told; i++)
        co_free(w->told[i].name);
    co_free(w->told);
    co_str_fini(&w->pending);
    co_free(w->folder);
    co_free(w->path);
    co_free(w);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static co_err tensorboard_open(void **out, const co_run_facts *run, const void *cfg)
{
    struct writer *w = co_zalloc(sizeof *w);

    if (!w)
        return CO_ENOMEM;
    w->run = run;
    w->cfg = cfg;
    w->fd = -1;
    if (w->cfg->dir)
        w->folder = co_sprintf("%s/%s", w->cfg->dir, w->cfg->name ? w->cfg->name : last_part(run->dir));
    else
        w->folder = co_sprintf("%s/tensorboard", run->dir);
    if (!w->folder) {
        tensorboard_close(w);
        return CO_ENOMEM;
    }
    *out = w;
    return CO_OK;
}

/* --- which lines are written ---------------------------------------------------------------------------- */
/* The head of this start's file, and what the earlier ones hold. `first` is the record's first line. */
static co_err begin(struct writer *w, const co_record_line *first)
{
    co_str what = {0};
    double now = co_wall_s();

    CO_TRY(events_find(&w->found, w->folder));
    w->mark.of = co_fnv1a64(first->text, first->len);
    if (w->found.upto && w->found.of != w->mark.of)
        return co_fail(
            CO_EINPUT,
            "%s has the events of another run, and both would be shown as one; remove them, or give "
            "logger.tensorboard.name=NAME",
            w->folder);
    w->looked = true;
    co_str event = {0};
    co_proto_f64(&event, 1, now);
    co_proto_text(&event, EVENT_VERSION, "brain.Event:2");
    tfrecord_add(&w->pending, co_str_text(&event), event.len);
    w->pending.failed |= event.failed;
    co_str_fini(&event);
    co_proto_int(&what, 1, STATUS_START);
    tb_event_add(&w->pending, now, w->run->first_step + 1, EVENT_SESSION_LOG, &what);
    co_str_fini(&what);
    return co_str_err(&w->pending);
}

static co_err remember(struct writer *w, const char *name, double value)
{
    for (size_t i = 0; i < w->n_told; i++)
        if (strcmp(w->told[i].name, name) == 0) {
            w->told[i].value = value;
            return CO_OK;
        }
    struct told *more = co_realloc(w->told, (w->n_told + 1) * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    w->told = more;
    more[w->n_told] = (struct told){co_strdup(name), value};
    return more[w->n_told++].name ? CO_OK : CO_ENOMEM;
}

static bool is_told(const struct writer *w, const char *name, double value)
{
    for (size_t i = 0; i < w->n_told; i++)
        if (strcmp(w->told[i].name, name) == 0)
            return memcmp(&w->told[i].value, &value, sizeof value) == 0;
    return false;
}

/* Is the line one that this file needs? */
static co_err is_wanted(bool *yes, struct writer *w, const co_record_line *line, long long step)
{
    const char *name = co_json_str(line->json, "name");
    double value = 0;
    bool scalar = name && co_json_f64(line->json, "value", &value);

    *yes = true;
    if (line->replayed) {
        *yes = line->end > w->found.upto && step <= w->run->first_step;
        return scalar && step == w->run->first_step ? remember(w, name, value) : CO_OK;
    }
    if (scalar && step == w->run->first_step)
        *yes = !is_told(w, name, value);
    return CO_OK;
}

/* --- lines as events ------------------------------------------------------------------------------------ */
/* config.yaml as Markdown: a block of code. */
static co_err add_config(struct writer *w, co_str *summary)
{
    char *text;
    size_t len;
    co_str code = {0};
    co_err err = co_fs_read(&text, &len, w->run->config, 1 << 20);

    if (err == CO_ENOMEM)
        return err;
    if (err) { /* the run folder was moved, say */
        co_errclear();
        return CO_OK;
    }
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\n");
        co_str_add(&code, "    ");
        co_str_addn(&code, at, n + (at[n] == '\n'));
        at += n + (at[n] == '\n');
    }
    summary_add_text(summary, "config", co_str_text(&code));
    summary->failed |= code.failed;
    co_str_fini(&code);
    co_free(text);
    return CO_OK;
}

static co_err summarise(struct writer *w, co_str *summary, bool *made, const co_record_line *line)
{
    const char *name = co_json_str(line->json, "name");

    *made = false;
    if (name && strcmp(name, "run_start") == 0) {
        hparams_start(summary, line->json, last_part(w->run->dir));
        *made = true;
        return line->replayed ? CO_OK : add_config(w, summary);
    }
    if (name && strcmp(name, "run_end") == 0) {
        *made = hparams_end(summary, line->json);
        return CO_OK;
    }
    return summary_of_line(summary, made, line->json, w->run->dir);
}

static co_err tensorboard_take(void *self, const co_record_line *line)
{
    struct writer *w = self;
    co_str summary = {0};
    long long step = 0;
    double t = 0;
    bool yes, made = false;

    if (!w->looked)
        CO_TRY(begin(w, line));
    co_json_i64(line->json, "step", &step);
    co_json_f64(line->json, "t", &t);
    CO_TRY(is_wanted(&yes, w, line, step));
    co_err err = yes ? summarise(w, &summary, &made, line) : CO_OK;
    if (!err && made)
        tb_event_add(&w->pending, t, step, EVENT_SUMMARY, &summary);
    if (!err)
        err = summary.failed ? CO_ENOMEM : co_str_err(&w->pending);
    co_str_fini(&summary);
    w->mark.upto = line->end;
    if (!err && w->pending.len > PENDING_MOST)
        err = co_fail(CO_EIO, "%s: more than %d MiB could not be written", w->folder, PENDING_MOST >> 20);
    return err;
}

/* --- the file ------------------------------------------------------------------------------------------- */
/* Below the run folder its parents are not made: a folder that was removed is not made again. */
static co_err make_folder(const struct writer *w)
{
    if (w->cfg->dir)
        return co_fs_mkdirs(w->folder);
    return mkdir(w->folder, 0777) == 0 || errno == EEXIST ? CO_OK : co_fail(CO_EIO, "mkdir %s: %m", w->folder);
}

/* The seconds in the name decide the order in which files are read, so they grow from start to start. */
static co_err open_file(struct writer *w)
{
    int64_t secs = (int64_t)co_wall_s();

    if (w->fd >= 0)
        return CO_OK;
    CO_TRY(make_folder(w));
    if (secs <= w->found.last_sec)
        secs = w->found.last_sec + 1;
    co_free(w->path);
    w->path = co_sprintf("%s/events.out.tfevents.%010lld.%s.%d.0.cohort", w->folder, (long long)secs,
                         w->run->host, (int)getpid());
    if (!w->path)
        return CO_ENOMEM;
    w->fd = open(w->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    return w->fd >= 0 ? CO_OK : co_fail(CO_EIO, "open %s: %m", w->path);
}

/* After a write that failed the file is as before; one that had nothing in it is removed. */
static co_err take_back(struct writer *w)
{
    if (w->size > 0 && ftruncate(w->fd, w->size) != 0)
        return co_fail(CO_EFAIL, "ftruncate %s after a write that failed: %m", w->path);
    if (w->size > 0)
        return CO_OK;
    unlink(w->path);
    close(w->fd);
    w->fd = -1;
    return CO_OK;
}

static co_err tensorboard_flush(void *self)
{
    struct writer *w = self;
    size_t before = w->pending.len;

    if (!before)
        return CO_OK;
    CO_TRY(open_file(w));
    mark_add(&w->pending, co_wall_s(), &w->mark);
    co_err err = co_str_err(&w->pending);
    if (!err)
        err = co_fs_write_all(w->fd, co_str_text(&w->pending), w->pending.len, w->path);
    if (!err) {
        w->size += (off_t)w->pending.len;
        co_str_clear(&w->pending);
        return CO_OK;
    }
    w->pending.len = before; /* without the mark */
    return take_back(w) == CO_OK ? err : CO_EFAIL;
}

const co_tracker_def tensorboard_def = {
    "tensorboard",     "event files for TensorBoard: scalars, histograms, images, text, hparams",
    tensorboard_open,  tensorboard_take,
    tensorboard_flush, tensorboard_close,
    options,           sizeof(struct tensorboard_cfg)};
