/* view.c -- a writer that was cut off from its run must not publish.
 *
 * Each view of a run that saves here leaves an empty file ".view~RUN-VIEW" before it writes anything. Such
 * files are only added while the run lives, so no writer can hide that a newer view has been here. A writer
 * looks for a larger view before it begins and again right before it publishes. It may still be suspended
 * between the second look and the rename; what appears then is its own folder, and whole. View 1 leaves no
 * file: there is nobody older to refuse.
 */
#include "ckpt/ckpt_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"

uint32_t run_digits(const co_ckpt_writer *by)
{
    if (!by || !by->run || !by->run[0])
        return 0;
    uint32_t hash = (uint32_t)co_fnv1a64(by->run, strlen(by->run));
    return hash ? hash : 1;
}

static bool read_name(const char *entry, unsigned *run, unsigned *view)
{
    size_t prefix = strlen(VIEW_PREFIX);
    int used = 0;

    return strncmp(entry, VIEW_PREFIX, prefix) == 0 &&
           sscanf(entry + prefix, "%8x-%u%n", run, view, &used) == 2 && !entry[prefix + (size_t)used];
}

co_err view_check(const char *root, const co_ckpt_writer *by)
{
    char **names;
    size_t n;
    unsigned run, view, largest = 0;

    if (!run_digits(by))
        return CO_OK;
    CO_TRY(co_fs_list(&names, &n, root));
    for (size_t i = 0; i < n; i++)
        if (read_name(names[i], &run, &view) && run == run_digits(by) && view > largest)
            largest = view;
    co_fs_list_free(names, n);
    if ((int64_t)largest <= by->view)
        return CO_OK;
    return co_fail(CO_EFAIL, "the run has gone on without this host: view %u has saved here, this is view %lld",
                   largest, (long long)by->view);
}

co_err view_enter(const char *root, const co_ckpt_writer *by)
{
    CO_TRY(view_check(root, by));
    if (!run_digits(by) || by->view <= 1)
        return CO_OK;
    char *path = co_sprintf("%s/" VIEW_PREFIX "%08x-%u", root, run_digits(by), (unsigned)by->view);
    if (!path)
        return CO_ENOMEM;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    co_err err = fd < 0 ? co_fail(CO_EIO, "create %s: %m", path) : CO_OK;
    if (fd >= 0)
        close(fd);
    co_free(path);
    return err ? err : co_fs_sync_dir(root);
}

/* A mark of our run is left over once a larger one is there. The folder is leased to our run, so other runs'
 * marks are of the past. */
bool view_is_left_over(const char *entry, const co_ckpt_writer *me)
{
    unsigned run, view;

    return run_digits(me) && read_name(entry, &run, &view) &&
           (run != run_digits(me) || (int64_t)view < me->view);
}
