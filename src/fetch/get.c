/* get.c -- a whole data set: its files downloaded and checked, unpacked beside its place, and moved there at
 * once.
 *
 *     DIR/ARCHIVE.part -> DIR/ARCHIVE -> DIR/.FOLDER.unpacking/ -> DIR/FOLDER/
 *
 * The folder appears under its name only when it is complete, so a call that was killed leaves nothing that
 * looks finished; the next call goes on from the last arrow that was done.
 */
#include "fetch/fetch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fs.h"
#include "data/archive.h"
#include "data/check.h"
#include "fetch/fetch_int.h"

/* Files that an archive may hold at most, and how much larger than the table says it may become. */
enum { MOST_FILES = 2000000, MOST_TIMES = 4 };

static co_err join(char out[FETCH_PATH], const char *dir, const char *before, const char *name,
                   const char *after)
{
    return snprintf(out, FETCH_PATH, "%s/%s%s%s", dir, before, name, after) < FETCH_PATH
               ? CO_OK
               : co_fail(CO_EINPUT, "the path %.200s... is too long", dir);
}

/* --- is it complete? ------------------------------------------------------------------------------------ */
static co_err check_folder(const co_set *set, const char *folder)
{
    char path[FETCH_PATH];

    for (int i = 0; set->needs[i]; i++) {
        CO_TRY(join(path, folder, "", set->needs[i], ""));
        if (!co_fs_exists(path))
            return co_fail(CO_EFORMAT, "%s lacks %s", folder, set->needs[i]);
    }
    const co_data_layout *layout = set->layout ? co_data_recognise(folder) : NULL;
    if (set->layout && (!layout || strcmp(layout->data, set->layout) != 0))
        return co_fail(CO_EFORMAT, "%s does not look like %s (%s)", folder, set->title,
                       layout ? layout->title : "no layout is recognised");
    return CO_OK;
}

/* --- unpacking ------------------------------------------------------------------------------------------ */
/* The only folder in `tmp` if there is nothing else in it, or tmp itself. */
static co_err find_top(char top[FETCH_PATH], const char *tmp)
{
    char **names, path[FETCH_PATH];
    size_t n, seen = 0;
    const char *only = NULL;

    CO_TRY(co_fs_list(&names, &n, tmp));
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], "__MACOSX") != 0 && ++seen)
            only = names[i];
    co_err err = seen == 1 ? join(path, tmp, "", only, "") : CO_OK;
    bool inside = !err && seen == 1 && co_fs_is_dir(path);
    snprintf(top, FETCH_PATH, "%s", inside ? path : tmp);
    co_fs_list_free(names, n);
    return err;
}

/* Puts the folder in its place; the old one, if any, is removed when the new one is complete. */
static co_err move_in(const char *from, const char *folder)
{
    char old[FETCH_PATH + 16];
    bool had = co_fs_exists(folder);

    snprintf(old, sizeof old, "%s.old-%d", folder, (int)getpid());
    if (had && rename(folder, old) != 0)
        return co_fail(CO_EIO, "rename %s to %s: %m", folder, old);
    if (rename(from, folder) != 0)
        return co_fail(CO_EIO, "rename %s to %s: %m", from, folder);
    return had ? co_fs_remove_tree(old) : CO_OK;
}

/* The empty folder to unpack into, locked: what a killed call left in it is removed. *fd is the caller's. */
static co_err open_tmp(int *fd, const char *tmp)
{
    char **names, path[FETCH_PATH];
    size_t n;

    CO_TRY(co_fs_mkdirs(tmp));
    *fd = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return co_fail(CO_EIO, "open %s: %m", tmp);
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
        return co_fail(CO_EINPUT, "another process is unpacking into %s: wait for it, then try again", tmp);
    CO_TRY(co_fs_list(&names, &n, tmp));
    co_err err = CO_OK;
    for (size_t i = 0; i < n && !err; i++) {
        err = join(path, tmp, "", names[i], "");
        if (!err)
            err = co_fs_remove_tree(path);
    }
    co_fs_list_free(names, n);
    return err;
}

static co_err unpack_into(co_set_facts *out, const co_set *set, const co_set_how *how, const char *archive,
                          const char *tmp)
{
    char top[FETCH_PATH];
    co_archive_facts facts;
    co_archive_limits limits = {.most_bytes = MOST_TIMES * set->unpacked,
                                .most_files = MOST_FILES,
                                .tell = how->tell_unpack,
                                .ctx = how->ctx};

    CO_TRY(co_archive_unpack(&facts, archive, tmp, &limits));
    out->unpacked_files = facts.files;
    out->unpacked_bytes = facts.bytes;
    CO_TRY(find_top(top, tmp));
    co_err err = check_folder(set, top);
    if (err)
        return co_fail_in(err, "%s was unpacked, but", archive);
    CO_TRY(move_in(top, out->folder));
    return strcmp(top, tmp) == 0 ? CO_OK : co_fs_remove_tree(tmp);
}

static co_err unpack(co_set_facts *out, const co_set *set, const co_set_how *how)
{
    char archive[FETCH_PATH], tmp[FETCH_PATH];

    CO_TRY(join(archive, how->dir, "", set->files[0].name, ""));
    CO_TRY(join(tmp, how->dir, ".", set->folder, ".unpacking"));
    int fd = -1;
    co_err err = open_tmp(&fd, tmp);
    bool ours = !err;
    if (!err)
        err = unpack_into(out, set, how, archive, tmp);
    if (err && ours) {
        char why[1024];
        snprintf(why, sizeof why, "%s", co_errmsg());
        co_fs_remove_tree(tmp);
        co_fail(err, "%s", why);
    }
    if (fd >= 0)
        close(fd);
    if (!err && !how->keep)
        unlink(archive);
    return err;
}

/* --- downloading ---------------------------------------------------------------------------------------- */
static co_err get_file(co_fetch_facts *out, const co_set *set, const co_set_file *file, const co_set_how *how,
                       const char *dir)
{
    char path[FETCH_PATH], mirrored[FETCH_URL];
    const char *one[] = {mirrored, NULL};
    size_t n = how->mirror ? strlen(how->mirror) : 0;

    CO_TRY(join(path, dir, "", file->name, ""));
    if (how->mirror && snprintf(mirrored, sizeof mirrored, "%s%s%s", how->mirror,
                                how->mirror[n - 1] == '/' ? "" : "/", file->name) >= (int)sizeof mirrored)
        return co_fail(CO_EINPUT, "the address %.100s... is too long", how->mirror);
    co_fetch_job job = {.urls = how->mirror ? one : file->urls,
                        .path = path,
                        .md5 = file->md5,
                        .sum_end = file->sum_end,
                        .size = file->size,
                        .room = set->unpack ? set->unpacked : 0,
                        .retries = how->retries,
                        .retry_ms = how->retry_ms,
                        .idle_ms = how->idle_ms,
                        .anew = how->force,
                        .tell = how->tell,
                        .ctx = how->ctx};
    co_err err = co_fetch(out, &job);
    if (how->mirror)
        out->url = how->mirror;
    return err;
}

co_err co_set_get(co_set_facts *out, const co_set *set, const co_set_how *how)
{
    *out = (co_set_facts){0};
    if (set->by_hand)
        return co_fail(CO_EINPUT, "%s", set->by_hand);
    if (how->mirror && !*how->mirror)
        return co_fail(CO_EINPUT, "the mirror's address is empty");
    CO_TRY(join(out->folder, how->dir, "", set->folder, ""));
    if (!how->force && co_fs_is_dir(out->folder) && check_folder(set, out->folder) == CO_OK) {
        out->was_there = true;
        return CO_OK;
    }
    const char *dir = set->unpack ? how->dir : out->folder;
    CO_TRY(co_fs_mkdirs(dir));
    for (int i = 0; set->files[i].name; i++, out->n_files++)
        CO_TRY(get_file(&out->file[i], set, &set->files[i], how, dir));
    CO_TRY(set->unpack ? unpack(out, set, how) : check_folder(set, out->folder));
    return co_fs_sync_dir(how->dir);
}
