/* listing_walk.c -- the files below a folder. Links are followed; a link to a folder that it lies in
 * is not. Hidden files and folders are left out. */
#include "data/folder_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "data/file_int.h"

enum { DEEPEST = 32, PATH_ROOM = 4096 };

struct place {
    const struct place *above;
    dev_t device;
    ino_t node;
    int depth;
};

static bool is_above(const struct place *p, const struct stat *st)
{
    for (; p; p = p->above)
        if (p->device == st->st_dev && p->node == st->st_ino)
            return true;
    return false;
}

static co_err walk(listing *l, char path[PATH_ROOM], size_t root_len, const struct place *here);

/* `path` is that of the file or folder; what it is called from root begins at root_len. */
static co_err visit(listing *l, char path[PATH_ROOM], size_t root_len, const struct place *here)
{
    const char *name = path + root_len;
    struct stat st;

    if (stat(path, &st) != 0)
        return listing_take(l, name, ENTRY_UNREAD, 0); /* a broken link: a bad sample when it is read */
    if (S_ISREG(st.st_mode))
        return listing_take(l, name, ENTRY_UNREAD, (uint64_t)st.st_size);
    if (!S_ISDIR(st.st_mode))
        return picture_named(name) ? co_fail_in(file_check_regular(path), "data.dir") : CO_OK;
    if (is_above(here, &st))
        return CO_OK;
    if (here->depth == DEEPEST)
        return co_fail(CO_EINPUT, "data.dir: %s: more than %d folders deep", path, DEEPEST);
    CO_TRY(listing_add(l, name, ENTRY_FOLDER, 0, 0));
    return walk(l, path, root_len, &(struct place){here, st.st_dev, st.st_ino, here->depth + 1});
}

static co_err walk(listing *l, char path[PATH_ROOM], size_t root_len, const struct place *here)
{
    char **names;
    size_t n, len = strlen(path);
    co_err err = co_fs_list(&names, &n, path);

    if (err)
        return err == CO_ENOMEM ? err : co_fail_in(CO_EINPUT, "data.dir");
    for (size_t i = 0; i < n && !err; i++) {
        if (names[i][0] == '.' || strcmp(names[i], "__MACOSX") == 0)
            continue;
        if (snprintf(path + len, PATH_ROOM - len, "/%s", names[i]) >= (int)(PATH_ROOM - len))
            err = co_fail(CO_EINPUT, "data.dir: %.100s.../%s: the path is too long", path, names[i]);
        else
            err = visit(l, path, root_len, here);
        path[len] = 0;
    }
    co_fs_list_free(names, n);
    return err;
}

co_err listing_walk(listing *l)
{
    char path[PATH_ROOM];
    struct stat st;
    size_t len = strlen(l->root);

    if (len >= sizeof path - 1 || stat(l->root, &st) != 0)
        return co_fail(CO_EINPUT, "data.dir: %.100s: %s", l->root, len < sizeof path ? "gone" : "too long");
    memcpy(path, l->root, len + 1);
    return walk(l, path, len + 1, &(struct place){NULL, st.st_dev, st.st_ino, 0});
}
