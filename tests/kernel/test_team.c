/* Every kernel computed by a team of threads at the same time: no share may write what another share reads or
 * writes. Run one after the other (test_cases.c), shares could still depend on each other unnoticed. */
#include <stdlib.h>
#include <string.h>

#include "base/team.h"
#include "harness.h"
#include "kernel/cases.h"
#include "kernel/kernel_int.h"
#include "kernel/wide.h"

static void check_cases(const co_kernels *k, co_team *team)
{
    for (int i = 0; i < op_case_count(); i++) {
        size_t len;
        void *one = op_case_run(k, op_case_at(i), 1, 0, &len);
        void *many = op_case_run_team(k, op_case_at(i), team, &len);
        CHECK(memcmp(one, many, len) == 0, "case %d (%s) on %s: other bytes from %d threads", i,
              co_op_name(op_case_at(i)->op), k->level, co_team_size(team));
        free(one);
        free(many);
    }
}

TEST(threads_that_share_a_kernel_neither_race_nor_change_a_bit_tsan)
{
    static const int sizes[] = {2, 3, 5};

    for (size_t t = 0; t < CO_COUNT(sizes); t++) {
        co_team *team = NULL;
        CHECK_OK(co_team_start(&team, sizes[t], CO_TEAM_SPIN, false));
        for (int i = 0; i < provider_count; i++) {
            const co_kernels *k;
            if (!providers[i].has())
                continue;
            CHECK_OK(co_kernels_get(&k, providers[i].name));
            if (!k->space)
                check_cases(k, team);
        }
        co_team_stop(team);
    }
}
