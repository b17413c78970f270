/* foreign.c -- handles a configs/ folder of another program: the Lightning and Hydra template, or a project
 * made from it.
 *
 * Such a folder has a main file with a defaults list (train.yaml or config.yaml; ours have none), and the
 * files of its groups name Python classes (`_target_:`). We use the keys that exist here and ignore the
 * others. The main file gives the choices of groups and the first values. Where the folder has no file for
 * a choice, the built-in one is used. A key whose absence would change the result (pretrained weights,
 * several hosts) is still refused.
 */
#include "config/config_int.h"

#include <string.h>

#include "base/fs.h"

static bool holds(const char *path, const char *line_start)
{
    char *text = NULL;
    size_t len, n = strlen(line_start);
    bool found = false;
    if (!co_fs_exists(path) || co_fs_read(&text, &len, path, CONF_MAX_BYTES) != CO_OK) {
        co_errclear();
        return false;
    }
    for (const char *s = text; s && !found; s = strchr(s, '\n'), s += s != NULL) {
        const char *word = s + strspn(s, " ");
        found = strncmp(word, line_start, n) == 0;
    }
    co_free(text);
    return found;
}

/* The first file of the group that names a Python class, or NULL. */
static co_err class_file(const char **out, co_pool *pool, const char *dir, const char *group)
{
    char **names, *folder = co_pool_printf(pool, "%s/%s", dir, group);
    size_t n;
    co_err err = CO_OK;
    if (!folder)
        return CO_ENOMEM;
    if (*out || !co_fs_is_dir(folder))
        return CO_OK;
    CO_TRY(co_fs_list(&names, &n, folder));
    for (size_t i = 0; i < n && !*out && !err; i++) {
        char *path = co_pool_printf(pool, "%s/%s", folder, names[i]);
        err = path ? CO_OK : CO_ENOMEM;
        if (path && !co_fs_is_dir(path) && holds(path, "_target_:"))
            *out = path;
    }
    co_fs_list_free(names, n);
    return err;
}

/* Sets *main_file only if the folder is another program's. */
static co_err recognise(const char **main_file, const char **with_class, co_pool *pool, const char *dir)
{
    static const char *const mains[] = {"train.yaml", "config.yaml"}, *const groups[] = {"trainer", "model",
                                                                                         "data", "datamodule"};
    const char *path = NULL;
    for (size_t i = 0; i < CO_COUNT(mains) && !path; i++) {
        char *at = co_pool_printf(pool, "%s/%s", dir, mains[i]);
        if (!at)
            return CO_ENOMEM;
        if (holds(at, "defaults:"))
            path = at;
    }
    for (size_t i = 0; i < CO_COUNT(groups) && path; i++)
        CO_TRY(class_file(with_class, pool, dir, groups[i]));
    if (*with_class)
        *main_file = path;
    return CO_OK;
}

/* The template's ${paths.data_dir} is data/. Other expressions are kept only if they name a key that exists
 * here. */
static co_err sift_expression(co_conf *c, conf_pair *p, bool *keep)
{
    static const char data_dir[] = "${paths.data_dir}";
    size_t head = strlen(data_dir), n = strlen(p->value);
    if (strncmp(p->value, data_dir, head) == 0) {
        const char *rest = p->value + head + strspn(p->value + head, "/");
        p->value = co_pool_printf(&c->pool, "data/%s", rest);
        *keep = !conf_has_expr(rest);
        return p->value ? CO_OK : CO_ENOMEM;
    }
    char *name = n > 3 ? co_pool_strn(&c->pool, p->value + 2, n - 3) : NULL;
    *keep = name && strncmp(p->value, "${", 2) == 0 && p->value[n - 1] == '}' && co_conf_knows(c->spec, name);
    return n > 3 && !name ? CO_ENOMEM : CO_OK;
}

/* Is this entry of a defaults list of use? Groups that do not exist here are ignored. */
static bool keep_entry(const co_conf *c, const conf_pair *p, bool from_root)
{
    size_t n = strcspn(p->key, "/");
    bool known = conf_group_index(c->spec, p->key, n) >= 0 || strncmp(p->key, "datamodule", n) == 0;
    return (p->defaults & (CONF_SELF | CONF_FILE)) || known ||
           (!from_root && !(p->defaults & (CONF_ABSOLUTE | CONF_OVERRIDE)));
}

/* Keys we never take: paths are relative to that program's own run folder, and the mode follows from the
 * metric. */
static bool is_its_own(const char *key)
{
    static const char *const keys[] = {"trainer.default_root_dir", "callbacks.model_checkpoint.dirpath",
                                       "callbacks.model_checkpoint.mode", "callbacks.early_stopping.mode"};
    for (size_t i = 0; i < CO_COUNT(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

co_err conf_foreign_sift(co_conf *c, conf_source *file, bool from_root)
{
    int kept = 0;
    for (int i = 0; i < file->n; i++) {
        conf_pair p = file->pairs[i];
        bool keep = p.defaults ? keep_entry(c, &p, from_root)
                               : !conf_is_null(&p) && strcmp(p.value, "???") != 0 && !is_its_own(p.key);
        if (keep && !p.defaults && conf_has_expr(p.value))
            CO_TRY(sift_expression(c, &p, &keep));
        if (keep)
            file->pairs[kept++] = p;
    }
    file->n = kept;
    return CO_OK;
}

static co_err say_found(const co_conf *c, const char *dir, const char *with_class)
{
    co_str text = {0};
    if (!c->spec->note)
        return CO_OK;
    co_str_addf(
        &text,
        "%s/ is a Lightning/Hydra project (%s names Python classes): cohort uses the keys it knows and "
        "its own defaults for the others",
        dir, with_class);
    co_err err = co_str_err(&text);
    if (!err)
        c->spec->note(co_str_text(&text));
    co_str_fini(&text);
    return err;
}

co_err conf_foreign_open(co_conf *c)
{
    const char *dir = conf_folder(c->spec), *path = NULL, *with_class = NULL;
    if (!dir || !co_fs_is_dir(dir))
        return CO_OK;
    CO_TRY(recognise(&path, &with_class, &c->pool, dir));
    if (!path)
        return CO_OK;
    c->foreign = dir;
    CO_TRY(say_found(c, dir, with_class));
    c->root.foreign = true;
    CO_TRY(conf_path_load(&c->root, &c->pool, "experiment", path));
    return conf_foreign_sift(c, &c->root, true);
}
