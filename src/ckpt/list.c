/* list.c -- which checkpoints there are: ls, newest, prune.
 *
 * Every folder under root is a checkpoint; links are not. ".old-NAME", the predecessor of NAME that a kill
 * during a save left (see save.c), is one as well. ".tmp-" folders are not, and nobody reads them. A
 * checkpoint to be removed is first renamed to .tmp-, so that a kill in the middle never leaves half a
 * checkpoint under a good name.
 */
#include "ckpt/ckpt_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"

static bool begins(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* How many bytes the files in a folder have. */
static co_err folder_bytes(uint64_t *out, const char *path)
{
    char **names;
    size_t n;
    struct stat st;
    co_err err = co_fs_list(&names, &n, path);

    if (err)
        return err;
    for (size_t i = 0; i < n && !err; i++) {
        char *file = co_sprintf("%s/%s", path, names[i]);
        if (!file)
            err = CO_ENOMEM;
        else if (lstat(file, &st) == 0 && S_ISREG(st.st_mode))
            *out += (uint64_t)st.st_size;
        co_free(file);
    }
    co_fs_list_free(names, n);
    return err;
}

/* Fills *info if root/name is a folder; if not, info->name stays NULL. */
static co_err read_info(co_ckpt_info *info, const char *root, const char *name)
{
    struct stat st;
    char *path = co_sprintf("%s/%s", root, name);
    co_err err = path ? CO_OK : CO_ENOMEM;

    if (!err && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        struct manifest m = {0};
        err = manifest_read(&m, path);
        if (!err)
            info->meta = m.meta;
        else if (err != CO_ENOMEM) {
            snprintf(info->why_bad, sizeof info->why_bad, "%s", co_errmsg());
            err = CO_OK;
        }
        co_pool_fini(&m.pool); /* the meta is info's */
        if (!err)
            err = folder_bytes(&info->bytes, path);
        if (err == CO_EIO && !co_fs_is_dir(path)) { /* a live run has removed it meanwhile */
            co_ckpt_meta_fini(&info->meta);
            *info = (co_ckpt_info){0};
            co_errclear();
            co_free(path);
            return CO_OK;
        }
        if (!err && !(info->name = co_strdup(name)))
            err = CO_ENOMEM;
        if (err)
            co_ckpt_meta_fini(&info->meta);
    }
    co_free(path);
    return err;
}

/* Those without a manifest first, then by step, then by name. */
static int age_order(const void *a, const void *b)
{
    const co_ckpt_info *x = a, *y = b;
    bool bad_x = x->why_bad[0] != 0, bad_y = y->why_bad[0] != 0;

    if (bad_x != bad_y)
        return bad_x ? -1 : 1;
    if (!bad_x && x->meta.step != y->meta.step)
        return x->meta.step < y->meta.step ? -1 : 1;
    return strcmp(x->name, y->name);
}

co_err co_ckpt_ls(co_ckpt_info **out, int *n, const char *root)
{
    char **names;
    size_t count;
    int found = 0;
    co_ckpt_info *list;
    co_err err = CO_OK;

    if (!co_fs_is_dir(root))
        return co_fail(CO_EINPUT, "%s: there is no such folder", root);
    CO_TRY(co_fs_list(&names, &count, root));
    list = co_array(count, sizeof *list);
    if (!list)
        err = CO_ENOMEM;
    for (size_t i = 0; i < count && !err; i++) {
        if (names[i][0] == '.' && !begins(names[i], OLD_PREFIX))
            continue;
        err = read_info(&list[found], root, names[i]);
        found += list[found].name != NULL;
    }
    co_fs_list_free(names, count);
    if (err) {
        co_ckpt_ls_free(list, found);
        return err;
    }
    qsort(list, (size_t)found, sizeof *list, age_order);
    *out = list;
    *n = found;
    return CO_OK;
}

void co_ckpt_ls_free(co_ckpt_info *list, int n)
{
    for (int i = 0; i < n; i++) {
        co_ckpt_meta_fini(&list[i].meta);
        co_free(list[i].name);
    }
    co_free(list);
}

/* Who is informed about checkpoints that do not verify. */
struct listener {
    void (*bad)(void *ctx, const char *path, const char *why);
    void *ctx;
};

/* Good: *found is set, the caller's. Bad: reported, *found stays as it is. */
static co_err try_one(char **found, const char *root, const co_ckpt_info *info, const struct listener *to)
{
    struct manifest m = {0};
    const char *why = info->why_bad;
    char *path = co_sprintf("%s/%s", root, info->name);
    co_err err = path ? CO_OK : CO_ENOMEM;

    if (!err && !why[0]) {
        err = verify(&m, path);
        manifest_fini(&m);
        if (!err) {
            *found = path;
            return CO_OK;
        }
        why = co_errmsg();
    }
    if (path && err != CO_ENOMEM) {
        if (to->bad)
            to->bad(to->ctx, path, why);
        err = CO_OK;
    }
    co_free(path);
    return err;
}

co_err co_ckpt_newest(char **path, const char *root,
                      void (*bad)(void *ctx, const char *path, const char *why), void *ctx)
{
    co_ckpt_info *list;
    struct listener to = {bad, ctx};
    char *found = NULL;
    int n;

    CO_TRY(co_ckpt_ls(&list, &n, root));
    co_err err = CO_OK;
    for (int i = n - 1; i >= 0 && !err; i--)
        if (!found || list[i].why_bad[0]) /* its step is unknown, so it may be the newest: always report it */
            err = try_one(&found, root, &list[i], &to);
    co_ckpt_ls_free(list, n);
    if (!err && !found)
        err = n ? co_fail(CO_EINPUT, "%s: none of its %d checkpoints is whole", root, n)
                : co_fail(CO_EINPUT, "%s: there is no checkpoint", root);
    if (err)
        co_free(found);
    else
        *path = found;
    return err;
}

/* --- prune --------------------------------------------------------------------------------------------- */

/* Does root/link point to `name`? */
static co_err points_to(bool *yes, const char *root, const char *link, const char *name)
{
    char target[512];
    char *path = co_sprintf("%s/%s", root, link);

    if (!path)
        return CO_ENOMEM;
    ssize_t n = readlink(path, target, sizeof target - 1);
    co_free(path);
    target[n < 0 ? 0 : n] = '\0';
    const char *slash = strrchr(target, '/');
    *yes = *yes || strcmp(slash ? slash + 1 : target, name) == 0;
    return CO_OK;
}

/* By way of another name: a writer that is still at work then fails to publish it, and publishes no half. */
static co_err remove_as(const char *root, const char *name, const char *as)
{
    char *path = co_sprintf("%s/%s", root, name);
    char *tmp = temp_path(root, "gone-", as, NULL);
    co_err err = path && tmp ? co_fs_remove_tree(tmp) : CO_ENOMEM;

    if (!err && rename(path, tmp) != 0)
        err = co_fail(CO_EIO, "rename %s to %s: %m", path, tmp);
    if (!err)
        err = co_fs_remove_tree(tmp);
    co_free(path);
    co_free(tmp);
    return err;
}

static co_err remove_one(const char *root, const char *name)
{
    return remove_as(root, name, name);
}

/* The name of a leftover may be too long for one more prefix. */
static co_err remove_left_over(const char *root, const char *name)
{
    char as[24];

    snprintf(as, sizeof as, "%016llx", (unsigned long long)co_fnv1a64(name, strlen(name)));
    return remove_as(root, name, as);
}

/* Leftovers: every .tmp- that nobody can publish any more, marks of older views, and every .old- whose
 * successor reads. */
static co_err sweep(const char *root, const co_ckpt_info *list, int n, const co_ckpt_writer *me)
{
    char **names;
    size_t count;

    CO_TRY(co_fs_list(&names, &count, root));
    co_err err = CO_OK;
    for (size_t i = 0; i < count && !err; i++) {
        bool go = (begins(names[i], TMP_PREFIX) && temp_is_left_over(root, names[i], me)) ||
                  view_is_left_over(names[i], me);
        for (int k = 0; k < n && begins(names[i], OLD_PREFIX); k++)
            go = go || (!list[k].why_bad[0] && strcmp(list[k].name, names[i] + strlen(OLD_PREFIX)) == 0);
        if (go)
            err = remove_left_over(root, names[i]);
    }
    co_fs_list_free(names, count);
    return err;
}

/* Does it say how good it is? Before the first step nothing was measured, whatever an older version wrote
 * there. */
static bool has_value(const co_ckpt_info *info)
{
    return !info->why_bad[0] && info->name[0] != '.' && info->meta.step > 0 &&
           json_is_number(json_object_get(info->meta.extra, "value"));
}

/* The value of checkpoint i, negated where less is better. False if it has none, or if its value is of
 * another monitor than the newest one's: an accuracy cannot be compared with a loss. */
static bool merit(const co_ckpt_info *list, int n, int i, double *out)
{
    int newest = n - 1;

    while (newest >= 0 && !has_value(&list[newest]))
        newest--;
    if (newest < 0 || !has_value(&list[i]))
        return false;
    const json_t *mine = list[i].meta.extra, *last = list[newest].meta.extra;
    bool up = json_is_true(json_object_get(mine, "up"));
    if (up != json_is_true(json_object_get(last, "up")) ||
        !json_equal(json_object_get(mine, "monitor"), json_object_get(last, "monitor")))
        return false;
    *out = json_number_value(json_object_get(mine, "value")) * (up ? 1 : -1);
    return true;
}

/* How many of the list are better; of equals the earlier one is. */
static int rank_of(const co_ckpt_info *list, int n, int i)
{
    double mine = 0, other;
    int better = 0;

    merit(list, n, i, &mine);
    for (int k = 0; k < n; k++)
        better += k != i && merit(list, n, k, &other) && (other > mine || (other == mine && k < i));
    return better;
}

co_err co_ckpt_of_step(char **path, const char *root, int64_t step)
{
    co_ckpt_info *list;
    char *found = NULL;
    int n;

    CO_TRY(co_ckpt_ls(&list, &n, root));
    co_err err = co_fail(CO_EINPUT, "%s has no checkpoint of step %lld", root, (long long)step);
    for (int i = 0; i < n && !found; i++)
        if (has_value(&list[i]) && list[i].meta.step == step) {
            found = co_sprintf("%s/%s", root, list[i].name);
            err = found ? CO_OK : CO_ENOMEM;
        }
    co_ckpt_ls_free(list, n);
    if (!err)
        *path = found;
    return err;
}

/* Removes what is neither among the newest `keep` of the prefix, nor among the best `top`, nor linked to. */
static co_err prune(const char *root, const co_ckpt_info *list, int n, const char *prefix, int keep, int top,
                    const co_ckpt_writer *me)
{
    co_err err = sweep(root, list, n, me);
    double value;

    for (int i = n - 1; i >= 0 && !err; i--) {
        bool linked = false;
        if (list[i].why_bad[0] || list[i].name[0] == '.' || !begins(list[i].name, prefix) || keep-- > 0)
            continue;
        if (merit(list, n, i, &value) && (top < 0 || rank_of(list, n, i) < top))
            continue;
        err = points_to(&linked, root, "last", list[i].name);
        if (!err)
            err = points_to(&linked, root, "best", list[i].name);
        if (!err && !linked)
            err = remove_one(root, list[i].name);
    }
    return err;
}

co_err co_ckpt_prune(const char *root, const char *prefix, int keep, const co_ckpt_writer *me)
{
    co_ckpt_info *list;
    int n;

    CO_TRY(co_ckpt_ls(&list, &n, root));
    co_err err = prune(root, list, n, prefix, keep, 0, me);
    co_ckpt_ls_free(list, n);
    return err ? co_fail_in(err, "prune %s", root) : CO_OK;
}

co_err co_ckpt_prune_but_best(const char *root, int keep, int top, const co_ckpt_writer *me)
{
    co_ckpt_info *list;
    double value;
    int n;

    CO_TRY(co_ckpt_ls(&list, &n, root));
    co_err err = CO_OK;
    for (int i = 0; i < n && !err && top != 0; i++)
        if (merit(list, n, i, &value) && rank_of(list, n, i) == 0)
            err = co_ckpt_link(root, "best", list[i].name);
    if (!err)
        err = prune(root, list, n, "", keep, top, me);
    co_ckpt_ls_free(list, n);
    return err ? co_fail_in(err, "prune %s", root) : CO_OK;
}
