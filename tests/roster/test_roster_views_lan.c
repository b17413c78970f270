/* A run of views over hosts that are network namespaces: the members' addresses, and a pulled cable. */
#include "roster/cast.h"

#include "net/ns.h"

static actor *enter_at(const ns_lan *lan, cast *all, int i, co_position at)
{
    ns_enter(lan, i);
    actor *one = enter_as(all, i, at);
    ns_leave(lan);
    return one;
}

static cast lan_cast(int n)
{
    cast all = cast_of(n, n, 1);
    co_token t = {{7, 7}};
    int port;

    CHECK_OK(co_net_free_port(&port));
    co_endpoint_text(all.scene.where.endpoint, sizeof all.scene.where.endpoint, "10.77.0.1", port);
    co_token_text(all.scene.where.token, &t);
    all.scene.where.lost_after_s = 1;
    return all;
}

TEST(every_member_of_a_view_has_an_address_that_the_others_reach)
{
    ns_lan lan = ns_open(4);
    cast all = lan_cast(3);

    all.scene.terms.max_hosts = 4;
    enter_at(&lan, &all, 0, whole_at_start);
    enter_at(&lan, &all, 1, whole_at_start);
    snprintf(all.scene.where.advertise, sizeof all.scene.where.advertise, "10.77.0.99");
    enter_at(&lan, &all, 2, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 3, 1));
    for (int i = 0; i < 3; i++) {
        const co_roster_view *view = all.host[i].view;
        for (int h = 0; h < 3; h++) {
            int who = view->member[h].name[0] - 'a';
            char want[32];
            snprintf(want, sizeof want, "10.77.0.%d", who == 2 ? 99 : who + 1);
            CHECK(strcmp(view->member[h].addr, want) == 0 && view->member[h].port == 40000 + who,
                  "host %d finds host %d at %s:%d", i, who, view->member[h].addr, view->member[h].port);
        }
    }
    cast_close(&all);
}

TEST(a_member_whose_cable_is_pulled_ends_and_comes_back_as_a_newcomer)
{
    ns_lan lan = ns_open(3);
    cast all = lan_cast(3);

    for (int i = 0; i < 3; i++)
        enter_at(&lan, &all, i, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 3, 1));
    double before = co_now_s();
    ns_cable(&lan, 2, false);
    PLAY_UNTIL(&all, all.host[2].over && in_view(&all, 2, 2));
    test_note("view without it after %.1f s", co_now_s() - before);
    CHECK(all.host[2].status == CO_EXIT_PREEMPTED &&
              test_contains(all.host[2].text, "which keeps the roster"),
          "%s", all.host[2].text);
    CHECK(test_contains(all.host[1].talk, "is lost: no sign of life"), "%s", all.host[1].talk);
    leave_stage(&all.host[2]);
    ns_cable(&lan, 2, true);
    actor *back = enter_at(&lan, &all, 2, whole_at_start);
    PLAY_UNTIL(&all, in_view(&all, 3, 3));
    CHECK(leaves(back) == 0 && back->view->view.anew[back->view->view.deal.me], "its state counts");
    cast_close(&all);
}
