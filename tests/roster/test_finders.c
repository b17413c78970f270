/* The ways in which a host finds the one that keeps the roster, each a row of a table. */
#include "roster/rosters.h"

#include "roster/net/network_int.h"

TEST(every_row_of_the_finders_of_a_roster_can_be_chosen_and_has_all_it_needs)
{
    char members[] = "127.0.0.1:1";
    co_meet given = {.endpoint = "127.0.0.1:0"}, etcd = {.etcd.members = members};

    CHECK(finder_for(&given) == &finder_given && finder_for(&etcd) == &finder_etcd, "%s and %s were chosen",
          finder_for(&given)->name, finder_for(&etcd)->name);
    for (size_t i = 0; i < CO_COUNT(finders); i++) {
        const finder_ops *row = finders[i];
        CHECK(row->name && row->wanted && row->needs_token && row->open && row->enter && row->refused,
              "row %zu lacks a function that every finder has", i);
        bool all = row->failed && row->turn && row->let_go && row->end && row->close;
        bool none = !row->failed && !row->turn && !row->let_go && !row->end && !row->close;
        CHECK(row->lost ? all : none,
              "%s: a finder survives the loss of a keeper with all functions, or none", row->name);
    }
    CHECK(finders[CO_COUNT(finders) - 1]->wanted(&(co_meet){0}), "the last row is not taken by default");
}
