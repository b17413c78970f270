/* What is done about a rank in trouble, alone and among several hosts. */
#include "train/remedy_int.h"

#include "harness.h"

static const struct {
    trouble what;
    remedy alone, among_hosts;
} rows[] = {
    {{.in_a_row = 1}, REMEDY_REPLACE, REMEDY_REPLACE},
    {{.in_a_row = SAME_PLACE_LIMIT - 1}, REMEDY_REPLACE, REMEDY_REPLACE},
    {{.in_a_row = SAME_PLACE_LIMIT}, REMEDY_END, REMEDY_LEAVE},
    {{.in_a_row = SAME_PLACE_LIMIT + 1}, REMEDY_END, REMEDY_LEAVE},
    {{.held = true}, REMEDY_END, REMEDY_LEAVE},
    {{.held = true, .in_a_row = 1}, REMEDY_END, REMEDY_LEAVE},
    {{.done = true, .in_a_row = SAME_PLACE_LIMIT}, REMEDY_LET_GO, REMEDY_LET_GO},
    {{.done = true, .held = true}, REMEDY_LET_GO, REMEDY_LET_GO},
};

TEST(a_host_whose_rank_cannot_go_on_leaves_the_others_and_alone_it_ends_the_run)
{
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        for (int hosts = 1; hosts <= 4; hosts++) {
            trouble what = rows[i].what;
            what.hosts = hosts;
            remedy got = remedy_for(&what), want = hosts == 1 ? rows[i].alone : rows[i].among_hosts;
            CHECK(got == want, "row %zu with %d hosts: %d", i, hosts, (int)got);
        }
}
