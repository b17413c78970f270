/* join_int.h -- shared by `cohort host` and `cohort join`. */
#ifndef CO_CLI_JOIN_INT_H
#define CO_CLI_JOIN_INT_H

#include "cli/launch_int.h"

extern const char *const job_flags[]; /* what the host tells, NULL-terminated */
extern const char host_usage[], join_usage[];
co_err name_job(co_pool *pool,
                const char **out); /* a short name of its own: what the job's log folders are called */

#endif
