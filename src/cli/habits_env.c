/* habits_env.c -- warns about variables that launchers set. A run here is on one host and starts its own
 * ranks, so it ignores them. If they ask for more than one process, a note says how they were understood. */
#include "cli/habits_int.h"

#include <stdlib.h>
#include <string.h>

static long long number(const char *name, long long otherwise)
{
    const char *text = getenv(name);
    long long n;

    return text && co_str_to_i64(text, &n) ? n : otherwise;
}

void habits_environment(void)
{
    long long world = number("WORLD_SIZE", 1), node = number("NODE_RANK", 0), rank = number("RANK", 0);
    bool processes = getenv("RANK") || getenv("LOCAL_RANK");

    if (world > 1 && processes)
        co_say("note: WORLD_SIZE=%lld, RANK=%lld are ignored. Taken as torchrun means them, a launcher has "
               "started this "
               "line as one of %lld processes, and each is a run of its own; start cohort train once, with "
               "trainer.devices=%lld",
               world, rank, world, world);
    else if (world > 1)
        co_say(
            "note: WORLD_SIZE=%lld is ignored. Taken as Lightning means it, it is the number of hosts; this "
            "run is on one "
            "(trainer.num_nodes=1)",
            world);
    if (node > 0)
        co_say("note: NODE_RANK=%lld is ignored: this run is on one host and does not meet others", node);
}
