/* sweep.c -- temporary files that a killed run left in its folder.
 *
 * Called by the run that has just taken the lease. NAME.tmp-PID-N are of base/fs.h: only the holder of the
 * lease writes here, so all that are there are of holders before us. .lease-ID are of starters (lease.c), who
 * may be alive and waiting for their turn: one goes only if the process that it names is gone. What cannot be
 * removed stays.
 */
#include "track/track_int.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

/* "NAME.tmp-PID-N" */
static bool is_temporary(const char *name)
{
    const char *at = strstr(name, ".tmp-");
    size_t pid = at ? strspn(at + 5, "0123456789") : 0;

    if (!pid || at == name || at[5 + pid] != '-')
        return false;
    const char *turn = at + 5 + pid + 1;
    size_t digits = strspn(turn, "0123456789");
    return digits > 0 && !turn[digits];
}

static co_err sweep(const char *dir)
{
    char **names;
    size_t n;
    co_err err = CO_OK;

    if (!co_fs_is_dir(dir))
        return CO_OK;
    CO_TRY(co_fs_list(&names, &n, dir));
    for (size_t i = 0; i < n && !err; i++) {
        char *path = co_sprintf("%s/%s", dir, names[i]);
        bool go = path && is_temporary(names[i]);
        err = path ? CO_OK : CO_ENOMEM;
        if (!err && !go)
            err = lease_is_left_over(&go, path, names[i]);
        if (go)
            unlink(path);
        co_free(path);
    }
    co_fs_list_free(names, n);
    return err;
}

co_err sweep_run_folder(const char *dir)
{
    char *tables = co_sprintf("%s/csv", dir);
    co_err err = tables ? sweep(dir) : CO_ENOMEM;

    if (!err)
        err = sweep(tables);
    co_free(tables);
    return err == CO_ENOMEM ? err : CO_OK;
}
