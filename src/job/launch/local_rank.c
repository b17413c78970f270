/* local_rank.c -- does a script expect its local rank as an argument?
 *
 * `python -m torch.distributed.launch` passes --local-rank=N (before PyTorch 2: --local_rank=N); torchrun
 * does not. Users of both type the same command line here, so the script decides: it gets the argument if it
 * defines one with that name and never mentions LOCAL_RANK, the variable that holds the same number.
 * --use-env turns this off.
 */
#include "job/launch/launch_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "term/say.h"

static const char *const spellings[] = {"--local-rank", "--local_rank"};

/* "--local_rank" between quotation marks, as in add_argument("--local_rank", ...). */
static bool is_quoted(const char *text, const char *flag)
{
    size_t n = strlen(flag);

    for (const char *at = text; (at = strstr(at, flag)); at += n)
        if (at > text && (at[-1] == '"' || at[-1] == '\'') && at[n] == at[-1])
            return true;
    return false;
}

/* The file of the module "package.train", in the pool. */
static const char *module_file(co_pool *pool, const char *module)
{
    char *path = co_pool_printf(pool, "%s.py", module);

    for (size_t i = 0; path && i < strlen(module); i++)
        if (path[i] == '.')
            path[i] = '/';
    return path;
}

void plan_local_rank(launch_plan *p, const launch_args *a, int at)
{
    const char *script = a->module ? module_file(&p->pool, a->program[0]) : a->program[0], *found = NULL;
    char *text = NULL;
    size_t len;

    if (a->use_env || a->no_python)
        return;
    if (!script || !co_fs_exists(script) || co_fs_read(&text, &len, script, 1 << 24) != CO_OK)
        co_errclear();
    for (size_t i = 0; text && i < CO_COUNT(spellings) && !found; i++)
        found = is_quoted(text, spellings[i]) ? spellings[i] : NULL;
    bool reads_environment = text && strstr(text, "LOCAL_RANK");
    co_free(text);
    if (!a->legacy && (!found || reads_environment))
        return;
    p->spec.local_rank_at = at;
    p->spec.local_rank_flag = found ? found : "--local_rank";
    if (!a->legacy)
        co_notice("%s defines %s and does not read LOCAL_RANK: it gets %s=N, as from "
                  "torch.distributed.launch"
                  " (--use-env: it does not)",
                  script, found, found);
}
