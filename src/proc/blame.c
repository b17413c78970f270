/* blame.c -- the one writer of blame.json. */
#include "proc/blame.h"

#include "base/alloc.h"

co_err co_blame_write_take(const char *folder, const char *run_id, json_t *facts)
{
    char *path = co_sprintf("%s/blame.json", folder);
    json_t *all = json_pack("{s:o}", "run_id", co_json_string(run_id));
    co_err err = CO_ENOMEM;

    if (path && facts && all && json_object_update(all, facts) == 0)
        err = co_json_write_private(all, path);
    json_decref(all);
    json_decref(facts);
    co_free(path);
    return err;
}
