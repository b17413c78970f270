/* Jobs of views over loopback: hosts come and go, and those that stay keep their state. */
#include "roster/cast.h"

/* The members' shares follow each other and cover all slices. */
static void check_deal(const cast *all, int n, int slices)
{
    for (int i = 0; i < n; i++) {
        const co_roster_view *view = all->host[i].view;
        const co_deal *deal = &view->view.deal;
        CHECK(deal->hosts == n && deal->from[0] == 0 && deal->from[n] == slices,
              "host %d: %d hosts, %d slices", i, deal->hosts, deal->from[n]);
        CHECK(leaves(&all->host[i]) >= slices / n && leaves(&all->host[i]) <= slices / n + 1,
              "host %d has %d", i, leaves(&all->host[i]));
        CHECK(view->member[deal->me].port == 40000 + i && view->member[deal->me].id == all->host[i].id &&
                  deal->id[deal->me] == all->host[i].id && view->member[deal->me].ranks == 2 &&
                  strcmp(view->member[deal->me].addr, "127.0.0.1") == 0,
              "host %d is member %d: place %d, port %d, at %s", i, deal->me, view->member[deal->me].id,
              view->member[deal->me].port, view->member[deal->me].addr);
    }
}

TEST(the_first_view_of_a_run_deals_its_slices_to_one_two_and_three_hosts)
{
    for (int n = 1; n <= 3; n++) {
        cast all = cast_of(n, n, n);
        for (int i = 0; i < n; i++)
            enter_as(&all, i, whole_at_start);
        PLAY_UNTIL(&all, in_view(&all, n, 1));
        check_deal(&all, n, 16);
        CHECK(all.host[0].id == 0, "the keeper has place %d", all.host[0].id);
        for (int i = 0; i < n; i++)
            co_roster_ended(all.host[i].r, all.host[i].number);
        for (int i = 0; i < n; i++) {
            PLAY_UNTIL(&all, all.host[i].over);
            CHECK(all.host[i].status == 0, "status %d: %s", all.host[i].status, all.host[i].text);
        }
        cast_close(&all);
    }
}

TEST(members_of_a_view_are_in_the_order_of_their_node_ranks)
{
    static const int rank[] = {0, 3, -1, 1};
    static const int want[] = {0, 3, 2, 1};
    cast all = cast_of(4, 4, 1);

    for (int i = 0; i < 4; i++) {
        all.scene.terms.host_rank = rank[i];
        enter_as(&all, i, whole_at_start);
    }
    PLAY_UNTIL(&all, in_view(&all, 4, 1));
    for (int i = 0; i < 4; i++)
        CHECK(all.host[i].view->view.deal.me == want[i], "host %d is member %d", i,
              all.host[i].view->view.deal.me);
    leave_stage(&all.host[3]); /* rank 1: the others keep their order */
    PLAY_UNTIL(&all, in_view(&all, 3, 2));
    for (int i = 0; i < 3; i++)
        CHECK(all.host[i].view->view.deal.me == (i == 0   ? 0
                                                 : i == 2 ? 1
                                                          : 2),
              "host %d is member %d", i, all.host[i].view->view.deal.me);
    cast_close(&all);
}

TEST(a_lost_host_of_a_run_leaves_its_slices_to_the_others)
{
    cast all = cast_of(3, 3, 1);

    for (int i = 0; i < 3; i++)
        enter_as(&all, i, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 3, 1));
    all.host[0].at = (co_position){.unit = 5, .ready = true, .whole = true, .since = 1};
    all.host[2].at = (co_position){.unit = 5, .whole = true, .since = 1};
    uint32_t before = all.host[0].number;
    leave_stage(&all.host[1]);
    PLAY_UNTIL(&all, in_view(&all, 2, before + 1));
    const co_view *view = &all.host[2].view->view;
    CHECK(view->held == 5 && view->giver[view->deal.me] == 1 - view->deal.me &&
              view->giver[1 - view->deal.me] == -1,
          "host c, which lacks unit %u, gets it from member %d", view->held, view->giver[view->deal.me]);
    CHECK(leaves(&all.host[0]) == 8 && leaves(&all.host[2]) == 8, "%d and %d slices", leaves(&all.host[0]),
          leaves(&all.host[2]));
    CHECK(test_contains(all.host[2].text, "host b (127.0.0.1) is lost") &&
              test_contains(all.host[2].talk, "2 hosts, a has 8 slices, c has 8"),
          "%s; %s", all.host[2].text, all.host[2].talk);
    cast_close(&all);
}

TEST(a_host_that_joins_a_run_is_fed_and_gets_slices_once_it_is_whole)
{
    cast all = cast_of(2, 3, 1);

    enter_as(&all, 0, whole_at_start);
    enter_as(&all, 1, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 2, 1));
    all.host[0].at.unit = all.host[1].at.unit = 9;
    /* it has the state of an old checkpoint, which is of no use here */
    actor *late = enter_as(&all, 2, (co_position){.unit = 4, .whole = true, .since = 4});
    PLAY_UNTIL(&all, in_view(&all, 3, 2));
    const co_view *view = &late->view->view;
    CHECK(leaves(late) == 0 && view->feeder[view->deal.me] >= 0 && view->anew[view->deal.me] && view->held == 8,
          "%d slices, fed by %d, unit %u", leaves(late), view->feeder[view->deal.me], view->held);
    CHECK(leaves(&all.host[0]) + leaves(&all.host[1]) == 16 && late->id == 2, "place %d", late->id);
    uint32_t fed = late->number;
    late->at = (co_position){.unit = 12, .whole = true, .since = 9};
    all.host[0].at.unit = all.host[1].at.unit = 12;
    co_roster_whole(late->r, fed);
    PLAY_UNTIL(&all, in_view(&all, 3, fed + 1));
    check_deal(&all, 3, 16);
    view = &late->view->view;
    CHECK(view->feeder[view->deal.me] == -1 && view->deal.whole == 7, "it is still fed");
    co_roster_whole(late->r, late->number); /* it is: nothing follows */
    for (int i = 0; i < 3; i++)
        co_roster_ended(all.host[i].r, all.host[i].number);
    PLAY_UNTIL(&all, all.host[0].over && all.host[1].over && all.host[2].over);
    CHECK(late->number == fed + 1 && late->status == 0, "view %u, status %d", late->number, late->status);
    cast_close(&all);
}

TEST(one_host_with_a_checkpoint_is_enough_to_continue_a_run)
{
    cast all = cast_of(3, 3, 1);

    enter_as(&all, 0, whole_at_start);
    enter_as(&all, 1, (co_position){.unit = 101, .whole = true, .since = 101});
    enter_as(&all, 2, nothing_yet);
    PLAY_UNTIL(&all, in_view(&all, 3, 1));
    const co_view *view = &all.host[1].view->view;
    CHECK(view->held == 100 && leaves(&all.host[1]) == 16, "unit %u, %d slices", view->held,
          leaves(&all.host[1]));
    for (int h = 0; h < 3; h++)
        CHECK(view->anew[h] == (h != view->deal.me) &&
                  view->feeder[h] == (h == view->deal.me ? -1 : view->deal.me),
              "member %d is fed by %d", h, view->feeder[h]);
    cast_close(&all);
}

TEST(a_run_with_too_few_hosts_waits_for_more)
{
    cast all = cast_of(3, 3, 3);

    for (int i = 0; i < 3; i++)
        enter_as(&all, i, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 3, 1));
    int place = all.host[2].id;
    leave_stage(&all.host[2]);
    PLAY_UNTIL(&all, all.host[0].waits && all.host[1].waits);
    CHECK(test_contains(all.host[1].wait, "2 hosts are here, at least 3 are needed") &&
              test_contains(all.host[1].wait, "host c (127.0.0.1) is lost"),
          "%s", all.host[1].wait);
    enter_as(&all, 2, nothing_yet);
    PLAY_UNTIL(&all, in_view(&all, 3, 2));
    CHECK(all.host[0].waits == 1 && all.host[1].waits == 1 && all.host[2].waits == 0 && all.host[2].id != place,
          "%d, %d, %d waits, place %d", all.host[0].waits, all.host[1].waits, all.host[2].waits,
          all.host[2].id);
    CHECK(leaves(&all.host[2]) == 0, "the newcomer has %d slices", leaves(&all.host[2]));
    cast_close(&all);
}

TEST(a_run_that_waits_in_vain_ends_and_says_how_to_continue)
{
    cast all = cast_of(2, 2, 2);

    all.scene.where.join_timeout_s = 1;
    enter_as(&all, 0, whole_at_start);
    enter_as(&all, 1, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 2, 1));
    leave_stage(&all.host[1]);
    PLAY_UNTIL(&all, all.host[0].over);
    CHECK(all.host[0].waits == 1 && all.host[0].status == CO_EXIT_PREEMPTED &&
              test_contains(all.host[0].text, "it continues from its last checkpoint"),
          "status %d: %s", all.host[0].status, all.host[0].text);
    cast_close(&all);
}

TEST(a_host_that_is_lost_during_a_change_makes_it_begin_again)
{
    cast all = cast_of(4, 4, 1);

    for (int i = 0; i < 4; i++)
        enter_as(&all, i, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 4, 1));
    uint32_t before = all.host[0].number;
    all.host[2].mute = true; /* the change cannot end */
    leave_stage(&all.host[3]);
    PLAY_UNTIL(&all, all.host[2].number == before + 1);
    leave_stage(&all.host[2]);
    PLAY_UNTIL(&all, in_view(&all, 2, before + 2));
    CHECK(all.host[0].number == before + 2, "view %u after %u", all.host[0].number, before);
    check_deal(&all, 2, 16);
    cast_close(&all);
}

TEST(a_run_ends_when_all_of_its_members_have_ended_tsan)
{
    cast all = cast_of(3, 3, 3);

    for (int i = 0; i < 3; i++)
        enter_as(&all, i, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 3, 1));
    co_roster_ended(all.host[0].r, all.host[0].number + 7); /* not of this view */
    co_roster_ended(all.host[0].r, all.host[0].number);
    co_roster_ended(all.host[1].r, all.host[1].number);
    all.host[0].at = all.host[1].at = (co_position){.unit = 9, .ended = true, .whole = true, .since = 1};
    leave_stage(&all.host[2]); /* the last one is lost: nothing is missing */
    PLAY_UNTIL(&all, all.host[0].over && all.host[1].over);
    /* A second change is right where the roster heard of the loss before it heard that b has ended. */
    CHECK(all.host[0].status == 0 && all.host[0].waits == 0 && all.host[0].freezes <= 2,
          "status %d, %d waits, %d changes: %s", all.host[0].status, all.host[0].waits, all.host[0].freezes,
          all.host[0].text);
    cast_close(&all);
}

TEST(a_run_whose_hosts_have_all_ended_needs_no_least_number_of_them)
{
    cast all = cast_of(3, 3, 3);

    for (int i = 0; i < 3; i++)
        enter_as(&all, i, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 3, 1));
    co_roster_ended(all.host[2].r, all.host[2].number);
    play(&all);
    /* c ended and is lost; a and b end before the roster asks them */
    all.host[0].at = all.host[1].at = (co_position){.unit = 9, .ended = true, .whole = true, .since = 1};
    leave_stage(&all.host[2]);
    PLAY_UNTIL(&all, all.host[0].over && all.host[1].over);
    CHECK(all.host[0].status == 0 && all.host[0].waits == 0, "status %d: %s", all.host[0].status,
          all.host[0].text);
    cast_close(&all);
}

TEST(a_run_that_nobody_holds_any_more_ends_and_says_how_to_continue)
{
    cast all = cast_of(2, 2, 1);

    enter_as(&all, 0, nothing_yet); /* the keeper is being fed by b */
    enter_as(&all, 1, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 2, 1));
    leave_stage(&all.host[1]);
    PLAY_UNTIL(&all, all.host[0].over);
    CHECK(all.host[0].status == CO_EXIT_PREEMPTED &&
              test_contains(all.host[0].text, "no host that is left holds"),
          "status %d: %s", all.host[0].status, all.host[0].text);
    cast_close(&all);
}
