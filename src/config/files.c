/* files.c -- finds a group's YAML files: first in --config-dir (or ./configs), then in the program itself. An
 * experiment may also be given by the path of a .yaml file.
 *
 * The keys of a file belong to its group ("lr" of optim/fast.yaml is optim.lr), unless it is an experiment or
 * says `# @package _global_` in the comments at its top: then they start at the root.
 */
#include "config/config_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

const char *conf_folder(const co_conf_spec *spec)
{
    if (spec->config_dir)
        return spec->config_dir;
    return co_fs_is_dir("configs") ? "configs" : NULL;
}

/* "mlp", "sub/mlp"; nothing that leaves the group's folder. */
static bool is_file_name(const char *choice)
{
    for (const char *s = choice;; s++) {
        size_t n = strcspn(s, "/");
        if (n == 0 || s[0] == '.')
            return false;
        s += n;
        if (*s == '\0')
            return true;
    }
}

static const char *builtin_text(const char *group, const char *choice)
{
    size_t n = strlen(group);
    for (const co_conf_builtin *b = co_conf_builtins; b->path; b++)
        if (strncmp(b->path, group, n) == 0 && b->path[n] == '/' && strcmp(b->path + n + 1, choice) == 0)
            return b->text;
    return NULL;
}

bool conf_builtin_exists(const char *group, const char *choice)
{
    return builtin_text(group, choice) != NULL;
}

const char *conf_builtin_help(const char *group, const char *choice, size_t *len)
{
    const char *text = builtin_text(group, choice);
    for (; text && *text == '#'; text += *len + (text[*len] == '\n')) {
        *len = strcspn(text, "\n");
        if (!memmem(text, *len, "@package", strlen("@package")) && *len > 2) {
            *len -= 2;
            return text + 2;
        }
    }
    *len = 0;
    return "";
}

/* The prefix of a file's keys; "" is the root. The comments at its top may set it with `# @package NAME`. */
static co_err package_of(const char **out, co_pool *pool, const char *name, const char *group, const char *text)
{
    static const char mark[] = "@package";
    char *own = co_pool_str(pool, group);
    if (!own)
        return CO_ENOMEM;
    for (char *s = own; *s; s++)
        *s = *s == '/' ? '.' : *s;
    *out = strncmp(group, "experiment", 10) == 0 && (!group[10] || group[10] == '/') ? "" : own;
    for (size_t n; *text == '#' || *text == '\n'; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        const char *at = memmem(text, n, mark, sizeof mark - 1);
        if (!at)
            continue;
        at += sizeof mark - 1;
        at += strspn(at, " \t");
        char *said = co_pool_strn(pool, at, strcspn(at, " \t\r\n"));
        if (!said)
            return CO_ENOMEM;
        if (strcmp(said, "_group_") == 0)
            *out = own;
        else if (strcmp(said, "_global_") != 0 && !conf_key_is_plain(said))
            return co_fail(CO_EINPUT, "%s: @package \"%s\" is neither _global_, _group_ nor a key", name, said);
        else
            *out = strcmp(said, "_global_") == 0 ? "" : said;
        return CO_OK;
    }
    return CO_OK;
}

static co_err parse(conf_source *file, co_pool *pool, const char *group, const char *text, size_t len)
{
    const char *package;
    CO_TRY(conf_yaml_parse(file, pool, text, len));
    CO_TRY(package_of(&package, pool, file->name, group, text));
    for (int i = 0; *package && i < file->n; i++) {
        conf_pair *p = &file->pairs[i];
        if (!p->defaults && !(p->key = co_pool_printf(pool, "%s.%s", package, p->key)))
            return CO_ENOMEM;
    }
    return CO_OK;
}

co_err conf_path_load(conf_source *file, co_pool *pool, const char *group, const char *path)
{
    char *text;
    size_t len;
    co_err err = co_fs_read(&text, &len, path, CONF_MAX_BYTES);
    if (err)
        return err == CO_ENOMEM ? err : co_fail_in(CO_EINPUT, "configuration");
    file->name = path;
    err = parse(file, pool, group, text, len);
    co_free(text);
    return err;
}

static co_err load_path(conf_source *file, bool *found, co_pool *pool, const char *group, const char *path)
{
    co_err err = conf_path_load(file, pool, group, path);
    *found = !err;
    return err;
}

/* Drops the keys that the program does not take from such a file. */
static void leave_out(conf_source *file, const co_conf_spec *spec)
{
    int kept = 0;
    for (int i = 0; i < file->n && spec->skips; i++)
        if (!spec->skips(file->name, file->pairs[i].key))
            file->pairs[kept++] = file->pairs[i];
    if (spec->skips)
        file->n = kept;
}

static bool is_path(const char *group, const char *choice)
{
    size_t n = strlen(choice);
    return strcmp(group, "experiment") == 0 && n > 5 && strcmp(choice + n - 5, ".yaml") == 0;
}

co_err conf_file_load(conf_source *file, bool *found, co_pool *pool, const co_conf_spec *spec,
                      const char *group, const char *choice)
{
    const char *dir = conf_folder(spec);
    *found = false;
    if (spec->config_dir && !co_fs_is_dir(spec->config_dir))
        return co_fail(CO_EINPUT, "the configuration folder %s is not there", spec->config_dir);
    if (is_path(group, choice)) {
        CO_TRY(load_path(file, found, pool, group, choice));
        leave_out(file, spec);
        return CO_OK;
    }
    if (!is_file_name(choice))
        return CO_OK;
    if (dir) {
        char *path = co_pool_printf(pool, "%s/%s%s%s.yaml", dir, group, *group ? "/" : "", choice);
        if (!path)
            return CO_ENOMEM;
        file->foreign &= co_fs_exists(path);
        if (co_fs_exists(path))
            return load_path(file, found, pool, group, path);
    }
    const char *text = builtin_text(group, choice);
    file->foreign = false;
    if (!text)
        return CO_OK;
    file->name = co_pool_printf(pool, "built-in %s/%s.yaml", group, choice);
    if (!file->name)
        return CO_ENOMEM;
    CO_TRY(parse(file, pool, group, text, strlen(text)));
    *found = true;
    return CO_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A growing list of names in the pool. */
struct names {
    const char **p;
    int n, room;
    co_pool *pool;
};

static co_err add_name(struct names *l, const char *name, size_t len)
{
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 16;
        const char **more = co_pool_alloc(l->pool, (size_t)room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        if (l->n)
            memcpy(more, l->p, (size_t)l->n * sizeof *more);
        l->p = more;
        l->room = room;
    }
    l->p[l->n] = co_pool_strn(l->pool, name, len);
    return l->p[l->n++] ? CO_OK : CO_ENOMEM;
}

static co_err add_folder(struct names *l, const char *dir, const char *group)
{
    char **entries;
    size_t n, len;
    char *path = co_pool_printf(l->pool, "%s/%s", dir, group);
    co_err err = CO_OK;
    if (!path)
        return CO_ENOMEM;
    if (!co_fs_is_dir(path))
        return CO_OK;
    CO_TRY(co_fs_list(&entries, &n, path));
    for (size_t i = 0; i < n && !err; i++)
        if ((len = strlen(entries[i])) > 5 && strcmp(entries[i] + len - 5, ".yaml") == 0)
            err = add_name(l, entries[i], len - 5);
    co_fs_list_free(entries, n);
    return err;
}

co_err conf_choices(const char ***names, int *n, co_pool *pool, const co_conf_spec *spec,
                    const co_conf_group *group)
{
    struct names l = {.pool = pool};
    size_t head = strlen(group->name);
    int kept = 0;
    for (int i = 0; i < group->n_rows; i++)
        CO_TRY(add_name(&l, group->rows[i].name, strlen(group->rows[i].name)));
    for (const co_conf_builtin *b = co_conf_builtins; b->path; b++)
        if (strncmp(b->path, group->name, head) == 0 && b->path[head] == '/')
            CO_TRY(add_name(&l, b->path + head + 1, strlen(b->path + head + 1)));
    if (conf_folder(spec))
        CO_TRY(add_folder(&l, conf_folder(spec), group->name));
    if (l.n)
        qsort(l.p, (size_t)l.n, sizeof *l.p, by_name);
    for (int i = 0; i < l.n; i++)
        if (i == 0 || strcmp(l.p[i], l.p[i - 1]) != 0)
            l.p[kept++] = l.p[i];
    *names = l.p;
    *n = kept;
    return CO_OK;
}
