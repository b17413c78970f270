/* sweep_folder.c -- does the folder of a sweep's job hold a run of the same configuration?
 *
 * A sweep finds its jobs by their numbers. A line with other values, or with values in another order, would
 * continue job 1 of the old line as job 1 of the new one, and list the old results under the new words. So
 * the configuration of each job is compared with the config.yaml in its folder, and the line is refused if
 * they differ in a key that a continued run may not change, or in one that the line sweeps over. Limits
 * (epochs, steps, time) may be raised, even if they are swept over: the job then trains on. */
#include "cli/sweep_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"

enum { CONFIG_MOST = 1 << 20, TOLD_MOST = 4 };

struct comparison {
    const sweep *sweep;
    json_t *was;       /* the folder's keys and values */
    co_str has, asked; /* " key=value" of each difference: the folder's, the job's */
    int n;
};

struct match {
    const char *key;
    bool found;
};

static bool is_below(const char *key, const char *section)
{
    size_t n = strlen(section);

    return strncmp(key, section, n) == 0 && (key[n] == '.' || !key[n]);
}

static void match_key(void *ctx, const char *key, const char *value)
{
    struct match *m = ctx;

    (void)value;
    m->found |= is_below(m->key, key) || strcmp(key, "experiment") == 0 || strcmp(key, "debug") == 0;
}

/* Does a word with alternatives set this key, alone or with its whole group? */
static bool is_swept(const sweep *s, const char *key)
{
    struct match m = {.key = key};

    for (int i = 0; i < s->line->n && !m.found; i++)
        if (co_conf_jobs_swept(s->jobs, i) &&
            co_conf_parse_word(co_conf_jobs_words(s->jobs, 0)[i], match_key, &m) != CO_OK)
            co_errclear();
    return m.found;
}

/* May a job differ in this key from the run that it continues? */
static bool may_differ(const sweep *s, const char *key)
{
    static const char *const always[] = {"defaults",           "run.dir",           "ckpt_path",
                                         "trainer.max_epochs", "trainer.max_steps", "trainer.max_time"};

    for (size_t i = 0; i < CO_COUNT(always); i++)
        if (is_below(key, always[i]))
            return true;
    return co_conf_may_change(app_conf_spec(s->line->config_dir), key) && !is_swept(s, key);
}

static void keep_pair(void *ctx, const char *key, const char *value)
{
    json_object_set_new(ctx, key, json_string(value));
}

static void compare_pair(void *ctx, const char *key, const char *value)
{
    struct comparison *c = ctx;
    const char *was = co_json_str(c->was, key);

    if (!was || strcmp(was, value) == 0 || may_differ(c->sweep, key))
        return;
    if (c->n++ < TOLD_MOST) {
        co_str_addf(&c->has, " %s=%s", key, was);
        co_str_addf(&c->asked, " %s=%s", key, value);
    }
}

static co_err read_config(json_t *pairs, const char *dir)
{
    char *path = co_sprintf("%s/config.yaml", dir), *bytes = NULL;
    size_t len = 0;
    co_err err = path ? co_fs_read(&bytes, &len, path, CONFIG_MOST) : CO_ENOMEM;

    if (!err)
        err = co_conf_parse_yaml(bytes, len, path, keep_pair, pairs);
    co_free(bytes);
    co_free(path);
    if (err && err != CO_ENOMEM)
        return co_fail_in(CO_EINPUT, "run.dir: %s holds a run, but not what it was made with", dir);
    return err;
}

static co_err compare(struct comparison *c, const app *one, const char *dir)
{
    co_str now = {0};

    co_conf_yaml(one->conf, &now);
    co_err err = co_str_err(&now);
    if (!err)
        err = read_config(c->was, dir);
    if (!err)
        err = co_conf_parse_yaml(co_str_text(&now), now.len, "the job's configuration", compare_pair, c);
    co_str_fini(&now);
    return err;
}

/* Refuses a job whose configuration is not that of the run in its folder. */
static co_err compare_runs(const sweep *s, int job, const char *dir, const app *one)
{
    struct comparison c = {.sweep = s, .was = json_object()};
    co_err err = c.was ? compare(&c, one, dir) : co_fail(CO_ENOMEM, "out of memory");
    const char *more = c.n > TOLD_MOST ? " ..." : "";

    if (!err && c.n)
        err =
            co_fail(CO_EINPUT,
                    "run.dir: job %d of this line has%s%s, but %s was made with%s%s: give this sweep another "
                    "folder, or the words of %s/multirun.yaml",
                    job, co_str_text(&c.asked), more, dir, co_str_text(&c.has), more, s->root);
    json_decref(c.was);
    co_str_fini(&c.has);
    co_str_fini(&c.asked);
    return err;
}

co_err sweep_check_folder(const sweep *s, int job, const char *dir, const app *one)
{
    if (!has(dir, "header.json"))
        return CO_OK;
    if (one->cfg->ckpt_path && one->cfg->ckpt_path[0])
        return compare_runs(s, job, dir, one);
    return co_fail(
        CO_EINPUT,
        "run.dir: %s holds a run already: add ckpt_path=auto to continue the sweep in %s, or choose "
        "another folder",
        dir, s->root);
}
