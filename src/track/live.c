/* live.c -- the runs of this user on this machine, one small file each, for ps, stop and attach.
 *
 * The folder is $XDG_RUNTIME_DIR/cohort, or /tmp/cohort-UID. It must belong to this user and be closed to
 * others (mode 0700), since ps and stop trust what is in it. An entry has the pid together with the start
 * time of the process, so that a later process with the same pid is not mistaken for the run. PID.progress
 * beside it has the run's last progress, PID.use what it takes of its hosts.
 */
#include "track/track_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"

enum { ENTRY_BYTES = 1 << 16, USE_BYTES = 4 << 20 };

static void sweep(void);

/* Makes the folder if it is absent and checks whose it is. */
static co_err make_private(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return co_fail(CO_EIO, "mkdir %s: %m", path);
    if (lstat(path, &st) != 0)
        return co_fail(CO_EIO, "stat %s: %m", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return co_fail(CO_EIO, "%s is not a folder of ours that is closed to others; remove it", path);
    return CO_OK;
}

/* *out is the caller's. */
static co_err live_dir(char **out)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *path = NULL;
    if (runtime && runtime[0] == '/' && co_fs_is_dir(runtime) && access(runtime, W_OK) == 0)
        path = co_sprintf("%s/cohort", runtime);
    else
        path = co_sprintf("/tmp/cohort-%u", (unsigned)geteuid());
    co_err err = path ? make_private(path) : CO_ENOMEM;
    if (err)
        co_free(path);
    else
        *out = path;
    return err;
}

static co_err entry_path(char **out, int pid, const char *kind)
{
    char *dir;
    CO_TRY(live_dir(&dir));
    *out = co_sprintf("%s/%d.%s", dir, pid, kind);
    co_free(dir);
    return *out ? CO_OK : CO_ENOMEM;
}

/* Writes PID.kind, which is useless after a crash. */
static co_err write_file(const json_t *v, const char *kind)
{
    char *path, *text = co_json_text(v);
    co_err err = text ? entry_path(&path, (int)getpid(), kind) : CO_ENOMEM;
    if (err) {
        co_free(text);
        return err;
    }
    err = co_fs_write_lightly(path, text, strlen(text));
    co_free(path);
    co_free(text);
    return err;
}

/* What every entry has, and `more`, which is the callee's. */
static co_err add_entry(const char *run_id, const char *dir, const char *task, json_t *more)
{
    process_id me;

    sweep();
    process_self(&me);
    json_t *v = process_to_json(&me);
    if (!v || !more || json_object_set_new(v, "run_id", json_string(run_id)) ||
        json_object_set_new(v, "dir", json_string(dir)) || json_object_set_new(v, "task", json_string(task)) ||
        json_object_set_new(v, "started", json_real(co_wall_s())) || json_object_update(v, more)) {
        json_decref(v);
        json_decref(more);
        return co_fail(CO_ENOMEM, "no memory for the entry of %s (or its name is not UTF-8)", dir);
    }
    json_decref(more);
    co_err err = write_file(v, "json");
    json_decref(v);
    return err;
}

co_err co_live_register(const co_folder *f, const char *task)
{
    char dir[PATH_MAX];

    if (!realpath(f->path, dir))
        return co_fail(CO_EIO, "realpath %s: %m", f->path);
    return add_entry(f->run_id, dir, task, json_object());
}

co_err co_live_register_guest(const char *job, const char *task)
{
    char id[64];

    snprintf(id, sizeof id, "%s", job);
    return add_entry(id, "", task, json_pack("{s:b}", "guest", 1));
}

co_err co_live_register_launch(const char *job, const char *what)
{
    char id[64];

    snprintf(id, sizeof id, "%s", job);
    return add_entry(id, "", "launch", json_pack("{s:o}", "launch", co_json_string(what)));
}

co_err co_live_hosts(const char *job, int64_t view, const char *record_host, const json_t *hosts)
{
    char *path;
    json_t *v = NULL;

    CO_TRY(entry_path(&path, (int)getpid(), "json"));
    co_err err = co_json_read(&v, path, ENTRY_BYTES);
    co_free(path);
    CO_TRY(err);
    if (json_object_set_new(v, "job", json_string(job)) || json_object_set_new(v, "view", json_integer(view)) ||
        json_object_set_new(v, "record_host", json_string(record_host)) ||
        json_object_set_new(v, "hosts", json_deep_copy(hosts)))
        err = co_fail(CO_ENOMEM, "no memory for the hosts of this run (or a name is not UTF-8)");
    if (!err)
        err = write_file(v, "json");
    json_decref(v);
    return err;
}

void co_live_unregister(void)
{
    static const char *const kinds[] = {"json", "progress", "use"};
    char *path;
    for (size_t i = 0; i < CO_COUNT(kinds); i++) {
        if (entry_path(&path, (int)getpid(), kinds[i]))
            return;
        unlink(path);
        co_free(path);
    }
}

/* Errors are ignored. */
void co_live_progress(const co_progress *p)
{
    json_t *v = json_pack("{s:I, s:I, s:I, s:I, s:i, s:s}", "step", (json_int_t)p->step, "steps",
                          (json_int_t)p->steps, "epoch", (json_int_t)p->epoch, "epochs", (json_int_t)p->epochs,
                          "ranks", p->ranks, "metric_name", p->metric_name ? p->metric_name : "");
    if (v && !json_object_set_new(v, "loss", co_json_num(p->loss)) &&
        !json_object_set_new(v, "metric", co_json_num(p->metric)) &&
        !json_object_set_new(v, "samples_per_s", co_json_num(p->samples_per_s)) &&
        !json_object_set_new(v, "eta_s", co_json_num(p->eta_s)) &&
        !json_object_set_new(v, "data_wait", co_json_num(p->data_wait)))
        (void)!write_file(v, "progress");
    json_decref(v);
    co_errclear();
}

bool co_live_see(int pid, co_progress *out, char metric_name[16])
{
    char *path;
    json_t *v = NULL;
    long long step, steps, epoch, epochs, ranks;
    bool there = false;
    if (entry_path(&path, pid, "progress") == CO_OK) {
        there = co_fs_exists(path) && co_json_read(&v, path, ENTRY_BYTES) == CO_OK;
        co_free(path);
    }
    const char *name = there ? co_json_str(v, "metric_name") : NULL;
    *out = (co_progress){0};
    there = there && name && co_json_i64(v, "step", &step) && co_json_i64(v, "steps", &steps) &&
            co_json_i64(v, "epoch", &epoch) && co_json_i64(v, "epochs", &epochs) &&
            co_json_i64(v, "ranks", &ranks) && co_json_f64(v, "loss", &out->loss) &&
            co_json_f64(v, "metric", &out->metric) && co_json_f64(v, "samples_per_s", &out->samples_per_s) &&
            co_json_f64(v, "eta_s", &out->eta_s) && co_json_f64(v, "data_wait", &out->data_wait);
    if (there) {
        snprintf(metric_name, 16, "%s", name);
        out->step = step;
        out->steps = steps;
        out->epoch = epoch;
        out->epochs = epochs;
        out->ranks = ranks > 0 && ranks < 1 << 16 ? (int)ranks : 0;
        out->metric_name = metric_name[0] ? metric_name : NULL;
    }
    json_decref(v);
    co_errclear();
    return there;
}

void co_live_use(const json_t *hosts)
{
    (void)!write_file(hosts, "use");
    co_errclear();
}

json_t *co_live_use_of(int pid)
{
    char *path;
    json_t *v = NULL;

    if (entry_path(&path, pid, "use") == CO_OK) {
        if (co_fs_exists(path) && co_json_read(&v, path, USE_BYTES) == CO_OK && !json_is_array(v)) {
            json_decref(v);
            v = NULL;
        }
        co_free(path);
    }
    co_errclear();
    return v;
}

static bool copy(char *out, size_t size, const char *text)
{
    return text && snprintf(out, size, "%s", text) < (int)size;
}

/* What only launches and runs of several hosts have. A list that is too long is left out. */
static void read_hosts(co_live_run *run, const json_t *v)
{
    long long view = 0;
    char *hosts = json_is_array(json_object_get(v, "hosts"))
                      ? json_dumps(json_object_get(v, "hosts"), JSON_COMPACT)
                      : NULL;

    run->guest = json_is_true(json_object_get(v, "guest"));
    const char *launch = co_json_str(v, "launch");
    snprintf(run->launch, sizeof run->launch, "%s", launch ? launch : "");
    if (hosts && copy(run->job, sizeof run->job, co_json_str(v, "job")) &&
        copy(run->record_host, sizeof run->record_host, co_json_str(v, "record_host")) &&
        co_json_i64(v, "view", &view) && !copy(run->hosts, sizeof run->hosts, hosts))
        run->hosts[0] = '\0';
    run->view = view;
    free(hosts);
}

/* Reads one entry. A file that is not an entry counts as PROCESS_DEAD. */
static co_err read_entry(co_live_run *run, process_state *state, const char *path)
{
    process_id who;
    json_t *v = NULL;
    co_err err = co_json_read(&v, path, ENTRY_BYTES);
    *state = PROCESS_DEAD;
    if (err)
        return err == CO_ENOMEM ? err : CO_OK;
    memset(run, 0, sizeof *run);
    if (process_from_json(&who, v) && copy(run->run_id, sizeof run->run_id, co_json_str(v, "run_id")) &&
        copy(run->dir, sizeof run->dir, co_json_str(v, "dir")) &&
        copy(run->task, sizeof run->task, co_json_str(v, "task")) && co_json_f64(v, "started", &run->started)) {
        run->pid = (int)who.pid;
        read_hosts(run, v);
        *state = process_look(&who);
    }
    json_decref(v);
    return CO_OK;
}

static int by_start(const void *a, const void *b)
{
    const co_live_run *x = a, *y = b;
    if (x->started != y->started)
        return x->started < y->started ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Is it "123.json"? Temporary files have longer names. */
static bool is_entry(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, ".json") == 0;
}

/* PID.json, and what lies beside it. */
static void forget(const char *path)
{
    static const char *const kinds[] = {"progress", "use"};

    for (size_t i = 0; i < CO_COUNT(kinds); i++) {
        char *beside = co_sprintf("%.*s.%s", (int)(strlen(path) - strlen(".json")), path, kinds[i]);
        if (beside)
            unlink(beside);
        co_free(beside);
    }
    unlink(path);
}

static co_err collect(co_live_run *runs, int *n, const char *dir, char **names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        process_state state;
        if (!is_entry(names[i]))
            continue;
        char *path = co_sprintf("%s/%s", dir, names[i]);
        co_err err = path ? read_entry(&runs[*n], &state, path) : CO_ENOMEM;
        if (!err && state == PROCESS_DEAD)
            forget(path);
        if (!err && state == PROCESS_ALIVE)
            ++*n;
        co_free(path);
        if (err)
            return err;
    }
    return CO_OK;
}

/* Is there a PID.json for PID.anything? */
static bool has_entry(const char *dir, const char *name)
{
    char *path = co_sprintf("%s/%.*s.json", dir, (int)strspn(name, "0123456789"), name);
    bool there = path && co_fs_exists(path);

    co_free(path);
    return there;
}

/* What a killed run left without an entry: PID.progress, or a temporary file. The pid may be one of
 * another pid namespace, whose run is just writing its entry: hence the minute. */
static bool is_left_over(const char *name, const char *path)
{
    struct stat st;
    size_t digits = strspn(name, "0123456789");

    return digits > 0 && digits < 10 && name[digits] == '.' && stat(path, &st) == 0 &&
           co_wall_s() - (double)st.st_mtime > 60 && kill((pid_t)atoi(name), 0) != 0 && errno == ESRCH;
}

/* At the start of a run: entries of dead runs (co_live_list removes them) and what has no entry. */
static void sweep(void)
{
    co_live_run *runs = NULL;
    char *dir, **names;
    size_t n_names;
    int n;

    if (co_live_list(&runs, &n) == CO_OK)
        co_free(runs);
    if (live_dir(&dir) != CO_OK)
        return;
    if (co_fs_list(&names, &n_names, dir) == CO_OK) {
        for (size_t i = 0; i < n_names; i++) {
            char *path = co_sprintf("%s/%s", dir, names[i]);
            if (path && !is_entry(names[i]) && is_left_over(names[i], path) && !has_entry(dir, names[i]))
                unlink(path);
            co_free(path);
        }
        co_fs_list_free(names, n_names);
    }
    co_free(dir);
    co_errclear();
}

co_err co_live_list(co_live_run **out, int *n)
{
    char *dir, **names;
    size_t n_names;
    int count = 0;
    CO_TRY(live_dir(&dir));
    co_err err = co_fs_list(&names, &n_names, dir);
    if (!err) {
        co_live_run *runs = co_array(n_names + 1, sizeof *runs);
        err = runs ? collect(runs, &count, dir, names, n_names) : CO_ENOMEM;
        if (!err) {
            qsort(runs, (size_t)count, sizeof *runs, by_start);
            *out = runs;
            *n = count;
        } else {
            co_free(runs);
        }
        co_fs_list_free(names, n_names);
    }
    co_free(dir);
    return err;
}
