/* run_files.c -- the small files of a run folder, each read again when it has changed, and what they say
 * about the state of the run. */
#include "track/run_read_int.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "track/times_int.h"

enum { FILE_MOST = 16 << 20, CONFIG_MOST = 4 << 20, LEASE_MOST = 1 << 16 };

static bool same_file(const seen_file *a, const seen_file *b)
{
    return a->there == b->there && a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Has the file changed since we looked? A link, a folder or a device counts as absent. */
static bool has_changed(seen_file *seen, const char *path)
{
    struct stat st;
    seen_file now = {0};

    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
        now = (seen_file){true, st.st_dev, st.st_ino, st.st_size, st.st_mtim};
    if (same_file(seen, &now))
        return false;
    *seen = now;
    return true;
}

static co_err read_object(json_t **out, const char *path, const seen_file *seen)
{
    json_t *v = NULL;
    co_err err = seen->there ? co_json_read(&v, path, FILE_MOST) : CO_OK;

    json_decref(*out);
    *out = json_is_object(v) ? json_incref(v) : NULL;
    json_decref(v);
    if (err && err != CO_ENOMEM)
        co_errclear();
    return err == CO_ENOMEM ? err : CO_OK;
}

static co_err read_text(char **out, const char *path, const seen_file *seen)
{
    char *text = NULL;
    size_t len = 0;
    co_err err = seen->there ? co_fs_read(&text, &len, path, CONFIG_MOST) : CO_OK;

    co_free(*out);
    *out = text && strlen(text) == len ? text : NULL; /* bytes of 0: no text */
    if (text && !*out)
        co_free(text);
    if (err && err != CO_ENOMEM)
        co_errclear();
    return err == CO_ENOMEM ? err : CO_OK;
}

co_err files_more(run_files *f, const char *dir)
{
    static const char *const names[] = {"header.json", "summary.json", "blame.json"};
    json_t **to[] = {&f->header, &f->summary, &f->blame};
    co_err err = CO_OK;

    for (size_t i = 0; i < CO_COUNT(names) && !err; i++) {
        char *path = co_sprintf("%s/%s", dir, names[i]);
        if (!path)
            return CO_ENOMEM;
        if (has_changed(&f->seen[i], path))
            err = read_object(to[i], path, &f->seen[i]);
        co_free(path);
    }
    char *path = err ? NULL : co_sprintf("%s/config.yaml", dir);
    if (path && has_changed(&f->seen[3], path))
        err = read_text(&f->config, path, &f->seen[3]);
    co_free(path);
    return err ? err : path ? CO_OK : CO_ENOMEM;
}

void files_fini(run_files *f)
{
    json_decref(f->header);
    json_decref(f->summary);
    json_decref(f->blame);
    co_free(f->config);
    *f = (run_files){0};
}

/* Does somebody still write here? */
static co_err is_leased(bool *out, const char *dir)
{
    char *path = co_sprintf("%s/lease.json", dir);
    struct stat st;
    process_id who;
    json_t *v = NULL;
    co_err err = path ? CO_OK : CO_ENOMEM;

    *out = false;
    if (!err && lstat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        err = co_json_read(&v, path, LEASE_MOST);
        if (!err && process_from_json(&who, v)) {
            process_state state = process_look(&who);
            double age_s = co_wall_s() - (double)st.st_mtim.tv_sec;
            *out = state == PROCESS_ALIVE || (state == PROCESS_ELSEWHERE && age_s < LEASE_STALE_S);
        }
    }
    json_decref(v);
    co_free(path);
    return err == CO_ENOMEM ? err : CO_OK;
}

co_err files_state(co_run_state *out, const run_files *f, const char *dir)
{
    const char *status = co_json_str(f->summary, "status");
    bool leased;

    for (int s = CO_RUN_DONE; s <= CO_RUN_FAILED; s++)
        if (status && strcmp(status, co_run_state_name((co_run_state)s)) == 0) {
            *out = (co_run_state)s;
            return CO_OK;
        }
    CO_TRY(is_leased(&leased, dir));
    *out = leased ? CO_RUN_RUNNING : CO_RUN_KILLED;
    return CO_OK;
}
