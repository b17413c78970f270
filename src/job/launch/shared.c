/* shared.c -- what `cohort host`, `cohort join` and --hosts share: the flags that are the same on all hosts,
 * and the job's name. */
#include "job/launch/launch_int.h"

#include "net/net.h"

/* Flags that must be the same on all hosts. The first host passes them on. */
const char *const job_flags[JOB_FLAGS_MOST] = {"--nnodes",
                                               "--nproc-per-node",
                                               "--rdzv-id",
                                               "--rdzv-conf",
                                               "--port",
                                               "--max-restarts",
                                               "--module",
                                               "--no-python",
                                               "--run-path",
                                               "--legacy-local-rank",
                                               "--use-env",
                                               "--log-dir",
                                               "--redirects",
                                               "--tee",
                                               "--local-ranks-filter",
                                               "--log-prefix",
                                               "--log-line-prefix-template",
                                               "--role",
                                               "--grace",
                                               "--shutdown-timeout",
                                               "--stall-after",
                                               "--signals-to-handle",
                                               "--virtual-local-rank",
                                               NULL};

co_err name_job(co_pool *pool, const char **out)
{
    char id[9];
    co_token t;

    CO_TRY(co_token_make(&t));
    for (int i = 0; i < 8; i++)
        id[i] = (char)(co_base32_letter(t.bits[i]) | 0x20); /* lower case; digits have the bit already */
    id[8] = '\0';
    *out = co_pool_str(pool, id);
    return *out ? CO_OK : CO_ENOMEM;
}
