/* What a change of the members decides. */
#include "comm/view.h"

#include "harness.h"

static const uint8_t id[] = {0, 1, 2, 3};
static const int equal[4];

static co_view decide(int hosts, const co_position *at)
{
    co_view v;

    CHECK_OK(co_view_decide(&v, 7, hosts, id, at, equal, 16));
    CHECK(v.deal.view == 7 && v.deal.hosts == hosts && v.deal.from[hosts] == 16, "the deal");
    return v;
}

TEST(a_unit_that_nobody_holds_is_computed_again)
{
    co_view v = decide(2, (co_position[]){{.unit = 5, .whole = true}, {.unit = 5, .whole = true}});

    CHECK(v.held == 4 && v.giver[0] < 0 && v.giver[1] < 0 && v.feeder[0] < 0, "held %u", v.held);
    CHECK(v.deal.whole == 3 && v.deal.from[1] == 8, "half of the leaves each");
}

TEST(a_unit_that_one_member_holds_is_given_to_the_others)
{
    co_view ready =
        decide(2, (co_position[]){{.unit = 5, .whole = true}, {.unit = 5, .ready = true, .whole = true}});
    co_view past = decide(2, (co_position[]){{.unit = 6, .whole = true}, {.unit = 5, .whole = true}});

    CHECK(ready.held == 5 && ready.giver[0] == 1 && ready.giver[1] < 0, "READY");
    CHECK(past.held == 5 && past.giver[1] == 0 && past.giver[0] < 0, "past it");
}

TEST(a_newcomer_is_fed_and_has_no_leaves)
{
    co_view v =
        decide(3, (co_position[]){{.unit = 5, .whole = true}, {.unit = 5, .whole = true}, {.fresh = true}});

    CHECK(v.anew[2] && v.feeder[2] == 0 && v.giver[2] < 0, "fed");
    CHECK(v.deal.from[2] == v.deal.from[3] && v.deal.whole == 3, "no leaves");
}

/* It entered with unit 5 held by others, who are gone; the one that is left stands before 5. */
TEST(a_newcomer_ahead_of_all_who_are_whole_is_fed_anew)
{
    co_view v = decide(2, (co_position[]){
                              {.unit = 5, .whole = true},
                              {.unit = 6, .fed = 3, .since = 6},
                          });

    CHECK(v.held == 4 && v.anew[1] && v.fed[1] == 0 && v.feeder[1] == 0, "held %u, fed %u", v.held, v.fed[1]);
}

TEST(a_whole_newcomer_cannot_give_what_it_entered_with)
{
    co_view v = decide(3, (co_position[]){{.unit = 6, .whole = true, .since = 6},
                                          {.unit = 5, .whole = true},
                                          {.unit = 6, .whole = true}});
    co_view alone = decide(2, (co_position[]){{.unit = 6, .whole = true, .since = 6}, {.fresh = true}});

    CHECK(v.held == 5 && v.giver[1] == 2, "given by the one that took part");
    CHECK(alone.held == 5 && alone.feeder[1] == 0 && !alone.anew[0], "it can feed, and go on");
}

/* The first view reached one of two hosts before a third came. */
TEST(a_member_that_the_first_view_did_not_reach_is_whole)
{
    co_position at[3] = {{.unit = 5, .first = 5, .start = 7, .whole = true},
                         {.unit = 5, .first = 5, .start = 7, .whole = true, .starts = true},
                         {.fresh = true}};
    co_view v = decide(3, at);

    CHECK(v.held == 4 && v.deal.whole == 3 && !v.anew[1] && v.feeder[1] < 0 && v.anew[2], "whole %llx",
          (unsigned long long)v.deal.whole);
    at[1].start = 8;
    CHECK(decide(3, at).anew[1], "it started from another state");
    at[1].start = 7;
    at[1].unit = at[1].first = 4;
    CHECK(decide(3, at).anew[1], "it started from an older checkpoint");
    at[1].unit = at[1].first = 5;
    at[0].unit = 6;
    CHECK(decide(3, at).anew[1], "the run has gone on");
    at[0].unit = 5;
    at[0].since = 5;
    CHECK(decide(3, at).anew[1], "nobody knows what the run began with");
    at[0].since = 0;
    at[0].ended = true;
    CHECK(decide(3, at).anew[1] && co_view_unfit(3, at) >> 1 & 1, "the run has ended");
}

TEST(without_a_whole_member_there_is_no_view)
{
    co_view v;

    CHECK_FAILS(co_view_decide(&v, 2, 2, id,
                               (co_position[]){{.unit = 3, .fed = 1, .since = 2}, {.fresh = true}}, equal, 16),
                CO_EFAIL, "no host that is left holds the whole state");
}

TEST(leaves_follow_weights_and_every_leaf_is_dealt_once)
{
    co_deal d = {.hosts = 4};

    co_deal_leaves(&d, 16, (int[]){3, 0, 5, 2});
    for (int h = 0; h < 4; h++)
        CHECK(d.from[h] <= d.from[h + 1], "member %d: %d to %d", h, d.from[h], d.from[h + 1]);
    CHECK(d.from[0] == 0 && d.from[4] == 16 && d.from[1] == d.from[2], "all leaves, and a spare");
}

TEST(hosts_that_are_nearly_as_fast_get_equal_shares)
{
    static const struct {
        int weight[3], from[4];
    } rows[] = {{{1000, 1001}, {0, 8, 16}},      {{1001, 1000}, {0, 8, 16}},
                {{100, 85}, {0, 8, 16}},         {{85, 100}, {0, 8, 16}},
                {{100, 50}, {0, 11, 16}},        {{50, 100}, {0, 5, 16}},
                {{100, 0}, {0, 16, 16}},         {{0, 0}, {0, 8, 16}},
                {{10, 10, 10}, {0, 5, 11, 16}},  {{10, 11, 10}, {0, 5, 11, 16}},
                {{40, 10, 10}, {0, 11, 13, 16}}, {{0, 10, 11}, {0, 0, 8, 16}}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        co_deal d = {.hosts = rows[i].from[3] ? 3 : 2};
        co_deal_leaves(&d, 16, rows[i].weight);
        for (int h = 0; h <= d.hosts; h++)
            CHECK(d.from[h] == rows[i].from[h], "row %zu: border %d is %d, not %d", i, h, d.from[h],
                  rows[i].from[h]);
    }
}

TEST(the_pieces_of_a_deal_cover_it_once)
{
    co_cut cut = co_cut_make(16, 16, 16, false);
    co_piece list[2 * CO_MAX_LEVELS];

    for (int from = 0; from < 16; from++)
        for (int to = from; to <= 16; to++) {
            co_deal d = {.hosts = 3, .from = {0, (int16_t)from, (int16_t)to, 16}};
            int n = co_deal_pieces(&d, &cut, 1, list), at = from;
            for (int i = 0; i < n; i++) {
                CHECK(list[i].index << list[i].level == at, "piece %d of [%d, %d)", i, from, to);
                at += 1 << list[i].level;
            }
            CHECK(at == to, "[%d, %d) is covered to %d", from, to, at);
        }
}
