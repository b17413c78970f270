/* A server of views under the test's own clock: what takes minutes, and what no honest host would send. */
#include "roster/table.h"

static const co_position start = {.unit = 1, .whole = true, .since = 1};

static table table_of(int n, int max, int least)
{
    table all = {.scene = scene_of(n, max, "127.0.0.1")};

    all.scene.terms.least_hosts = least;
    return all;
}

static void fill(table *all, int n)
{
    table_open(all, NULL, start);
    for (int i = 1; i < n; i++) {
        sit(all, i, start);
        PASS_UNTIL(all, seats_joined(&all->server->seats) == i + 1);
    }
    PASS_UNTIL(all, seats_joined(&all->server->seats) == n);
    if (n < all->scene.terms.max_hosts)
        pass(all, 1000); /* the last call is over */
    PASS_UNTIL(all, table_runs(all, n, 1));
}

static void say_cut(guest *by, int place)
{
    CHECK_OK(client_say(
        &by->client, FRAME_CUT,
        json_pack("{sI si ss}", "number", (json_int_t)by->number, "place", place, "text", "reset")));
}

TEST(a_cut_between_two_members_leads_to_a_new_view_with_the_same_members)
{
    table all = table_of(3, 3, 1);

    fill(&all, 3);
    uint32_t before = all.guest[0].number;
    say_cut(&all.guest[1], 2);
    say_cut(&all.guest[2], 1);
    calm(&all);
    CHECK(all.guest[0].number == before, "the change does not wait for a death to be noticed");
    pass(&all, 250);
    PASS_UNTIL(&all, table_runs(&all, 3, before + 1));
    CHECK(all.guest[0].number == before + 1, "view %u after %u", all.guest[0].number, before);
    CHECK(test_contains(all.guest[0].talk, "host b lost its connection to c (127.0.0.1): reset"), "%s",
          all.guest[0].talk);
    table_close(&all);
}

TEST(a_member_that_lost_all_of_its_connections_gets_a_new_view_and_nobody_is_blamed)
{
    table all = table_of(1, 1, 1);

    fill(&all, 1);
    for (uint32_t i = 1; i <= 5; i++) {
        say_cut(&all.guest[0], 0);
        calm(&all);
        pass(&all, 250);
        PASS_UNTIL(&all, table_runs(&all, 1, i + 1));
    }
    CHECK(!all.guest[0].over, "%s", all.guest[0].text);
    table_close(&all);
}

TEST(a_death_that_looks_like_a_cut_costs_one_change)
{
    table all = table_of(3, 3, 1);

    fill(&all, 3);
    uint32_t before = all.guest[0].number;
    say_cut(&all.guest[1], 2);
    calm(&all);
    stand_up(&all.guest[2]);
    PASS_UNTIL(&all, table_runs(&all, 2, before + 1));
    pass(&all, 250);
    calm(&all);
    CHECK(all.guest[0].number == before + 1, "view %u after %u", all.guest[0].number, before);
    table_close(&all);
}

/* `by` says in three views that it lost the one at `place`; `also` says so too. */
static void cut_three_times(table *all, int by, int also, int place, double apart_ms, int n)
{
    for (int i = 0; i < 3; i++) {
        uint32_t before = all->guest[0].number;
        say_cut(&all->guest[by], place);
        if (also >= 0)
            say_cut(&all->guest[also], place);
        calm(all);
        pass(all, 250);
        PASS_UNTIL(all, table_runs(all, i < 2 ? 4 : n, before + 1));
        pass(all, apart_ms);
    }
}

TEST(of_two_members_that_are_cut_three_times_the_more_accused_is_sent_away)
{
    table all = table_of(4, 4, 1);

    fill(&all, 4);
    cut_three_times(&all, 2, 3, 1, 100, 3); /* c and d accuse b, which joined before them */
    CHECK(all.guest[1].over && all.guest[1].status == CO_EXIT_PREEMPTED && !all.guest[2].over &&
              !all.guest[3].over &&
              test_contains(all.guest[1].text, "lost their connection 3 times within 60 s"),
          "%d: %s", all.guest[1].status, all.guest[1].text);
    table_close(&all);
}

TEST(of_two_members_that_are_cut_three_times_the_later_joiner_is_sent_away)
{
    table all = table_of(4, 4, 1);

    fill(&all, 4);
    for (int i = 0; i < 3; i++) {
        say_cut(&all.guest[2], 1);
        say_cut(&all.guest[1], 2);
        calm(&all);
        pass(&all, 250);
        PASS_UNTIL(&all, table_runs(&all, i < 2 ? 4 : 3, (uint32_t)i + 2));
    }
    CHECK(all.guest[2].over && all.guest[2].status == CO_EXIT_PREEMPTED && !all.guest[1].over, "%s",
          all.guest[2].text);
    table_close(&all);
}

TEST(the_host_that_keeps_the_roster_is_never_sent_away_for_a_cut)
{
    table all = table_of(4, 4, 1);

    fill(&all, 4);
    cut_three_times(&all, 2, 3, 0, 100, 3);
    CHECK(!all.guest[0].over && all.guest[2].over + all.guest[3].over == 1, "the keeper is sent away");
    table_close(&all);
}

TEST(cuts_that_are_more_than_a_minute_apart_send_nobody_away)
{
    table all = table_of(4, 4, 1);

    fill(&all, 4);
    cut_three_times(&all, 2, 3, 1, 40000, 4);
    CHECK(!all.guest[1].over && all.guest[0].number == 4, "view %u", all.guest[0].number);
    table_close(&all);
}

static void say_weight(guest *by, int weight)
{
    CHECK_OK(client_say(&by->client, FRAME_WEIGH,
                        json_pack("{sI si}", "number", (json_int_t)by->number, "weight", weight)));
}

TEST(a_host_that_turns_out_to_be_slower_gets_fewer_slices_after_ten_seconds)
{
    table all = table_of(2, 2, 1);

    all.guest[0].weight = 0;
    fill(&all, 2);
    CHECK(slices_of(&all.guest[0]) == 8 && slices_of(&all.guest[1]) == 8, "%d slices",
          slices_of(&all.guest[0]));
    say_weight(&all.guest[0], 300);
    say_weight(&all.guest[1], 100);
    calm(&all);
    pass(&all, 9000);
    calm(&all);
    CHECK(all.guest[0].number == 1, "a view of 9 s is given up");
    pass(&all, 1100);
    PASS_UNTIL(&all, table_runs(&all, 2, 2));
    CHECK(slices_of(&all.guest[0]) == 12 && slices_of(&all.guest[1]) == 4, "%d and %d slices",
          slices_of(&all.guest[0]), slices_of(&all.guest[1]));
    say_weight(&all.guest[0], 310); /* no slice would change hands */
    calm(&all);
    pass(&all, 11000);
    calm(&all);
    CHECK(all.guest[0].number == 2, "a change without a reason");
    table_close(&all);
}

TEST(a_host_that_does_not_stop_its_step_counts_as_lost)
{
    table all = table_of(3, 3, 1);

    fill(&all, 3);
    all.guest[1].mute = true;
    uint32_t before = all.guest[0].number;
    stand_up(&all.guest[2]);
    PASS_UNTIL(&all, all.guest[1].number == before + 1);
    all.server->where.lost_after_s = 3;
    for (int i = 0; i < 9; i++) {
        pass(&all, 1000);
        calm(&all); /* it answers pings */
    }
    CHECK(seats_joined(&all.server->seats) == 2, "it is lost too early");
    pass(&all, 1500);
    PASS_UNTIL(&all, all.guest[0].number == before + 2 && all.server->job.stage == RUN);
    CHECK(all.guest[0].view->view.deal.hosts == 1 &&
              test_contains(all.guest[0].talk, "is lost: it did not stop its step within 10 s"),
          "%s", all.guest[0].talk);
    table_close(&all);
}

/* Two hosts have met; the second has not answered FREEZE for a minute, but it answers pings. */
static void prepare_for_a_minute(table *all)
{
    table_open(all, NULL, start);
    sit(all, 1, start)->mute = true;
    PASS_UNTIL(all, all->guest[1].freezes == 1);
    all->server->where.lost_after_s = 3;
    for (int i = 0; i < 60; i++) {
        pass(all, 1000);
        calm(all);
    }
}

TEST(a_host_that_takes_a_minute_to_prepare_is_waited_for_before_the_first_view)
{
    table all = table_of(2, 2, 1);
    guest *late = &all.guest[1];

    prepare_for_a_minute(&all);
    CHECK(seats_joined(&all.server->seats) == 2, "it is lost: %s", all.guest[0].talk);
    CHECK_OK(client_say(&late->client, FRAME_POSITION, position_pack(late->number, &late->at, late->weight)));
    PASS_UNTIL(&all, table_runs(&all, 2, 1));
    table_close(&all);
}

TEST(a_host_that_never_gets_ready_for_the_first_view_counts_as_lost)
{
    table all = table_of(2, 2, 1);

    prepare_for_a_minute(&all);
    all.server->where.lost_after_s = 100; /* time advances in larger steps */
    for (int i = 0; i < 11; i++) {
        pass(&all, 50000);
        calm(&all);
    }
    PASS_UNTIL(&all, seats_joined(&all.server->seats) == 1);
    table_close(&all);
}

TEST(a_host_that_was_only_silent_hears_that_the_run_goes_on_without_it)
{
    table all = table_of(3, 3, 1);

    fill(&all, 3);
    all.server->where.lost_after_s = 3;
    all.guest[2].here = false; /* it is stopped */
    for (int i = 0; i < 4; i++) {
        pass(&all, 1000);
        calm(&all);
    }
    PASS_UNTIL(&all, table_runs(&all, 2, 2));
    all.guest[2].here = true;
    PASS_UNTIL(&all, all.guest[2].over);
    CHECK(
        all.guest[2].status == CO_EXIT_PREEMPTED &&
            test_contains(all.guest[2].text, "the run goes on without this host: no sign of life for 4.0 s"),
        "%s", all.guest[2].text);
    table_close(&all);
}

TEST(a_member_of_a_run_that_leaves_goes_alone)
{
    table all = table_of(3, 3, 1);
    co_leave how = {.status = CO_EXIT_PREEMPTED, .origin = CO_ORIGIN_HOST, .text = "a GPU is lost"};

    fill(&all, 3);
    CHECK_OK(client_say(&all.guest[2].client, FRAME_LEAVE, leave_pack(&how)));
    PASS_UNTIL(&all, table_runs(&all, 2, 2));
    CHECK(all.guest[2].over && all.guest[2].status == CO_EXIT_PREEMPTED &&
              test_contains(all.guest[0].talk, "host c (127.0.0.1) left: a GPU is lost"),
          "%s", all.guest[0].talk);
    CHECK_OK(client_say(&all.guest[0].client, FRAME_LEAVE, leave_pack(&how))); /* the keeper: all end */
    PASS_UNTIL(&all, all.guest[0].over && all.guest[1].over);
    CHECK(all.guest[1].status == CO_EXIT_PREEMPTED &&
              test_contains(all.guest[1].text, "which keeps the roster"),
          "%s", all.guest[1].text);
    table_close(&all);
}

TEST(a_host_that_leaves_before_the_first_view_leaves_the_others_waiting)
{
    table all = table_of(3, 3, 1);
    co_leave how = {.sig = 2, .status = 130, .origin = CO_ORIGIN_USER, .host = "b"};

    table_open(&all, NULL, start);
    sit(&all, 1, start);
    PASS_UNTIL(&all, seats_joined(&all.server->seats) == 2);
    CHECK_OK(client_say(&all.guest[1].client, FRAME_LEAVE, leave_pack(&how)));
    PASS_UNTIL(&all, all.guest[1].over);
    CHECK(all.guest[1].status == 130 && !all.guest[0].over &&
              test_contains(all.guest[0].talk, "left before the start: SIGINT on b; 1 of 3 hosts are here"),
          "%s", all.guest[0].talk);
    sit(&all, 2, start);
    sit(&all, 3, start);
    PASS_UNTIL(&all, table_runs(&all, 3, 1));
    table_close(&all);
}

/* --- hosts that lie ------------------------------------------------------------------------------------- */
static json_t *parsed(const char *text)
{
    json_t *body = NULL;

    CHECK_OK(co_json_parse(&body, text, strlen(text), "test"));
    return body;
}

TEST(frames_that_no_honest_member_sends_change_nothing)
{
    static const char *const bodies[] = {
        "{}",
        "{\"number\": 1}",
        "{\"number\": -1, \"place\": 1}",
        "{\"number\": 2, \"place\": 1, \"weight\": 5}",
        "{\"number\": 4294967297, \"place\": 1}",
        "{\"number\": 1, \"place\": 64, \"text\": 7}",
        "{\"number\": 1, \"place\": 63}",
        "{\"number\": 1, \"place\": -1}",
        "{\"number\": 1, \"weight\": -3}",
        "{\"number\": 1, \"weight\": 99999999999}",
        "{\"number\": 1, \"unit\": 3, \"fed\": 0, \"since\": 0, \"weight\": 1}", /* nobody asked */
    };
    static const frame_type types[] = {FRAME_POSITION, FRAME_CUT,  FRAME_WEIGH, FRAME_FREEZE, FRAME_VIEW,
                                       FRAME_WAIT,     FRAME_PICK, FRAME_DONE,  FRAME_FAILED, FRAME_STOPPED};
    table all = table_of(3, 3, 1);

    fill(&all, 3);
    for (size_t t = 0; t < CO_COUNT(types); t++)
        for (size_t i = 0; i < CO_COUNT(bodies); i++)
            CHECK_OK(client_say(&all.guest[2].client, types[t], parsed(bodies[i])));
    CHECK_OK(client_say(&all.guest[2].client, FRAME_WHOLE, parsed("{\"number\": 1}"))); /* it is */
    calm(&all);
    for (int i = 0; i < 13; i++) {
        pass(&all, 1000);
        calm(&all);
    }
    CHECK(table_runs(&all, 3, 1) && all.guest[0].number == 1 && slices_of(&all.guest[2]) == 5, "view %u",
          all.guest[0].number);
    table_close(&all);
}

TEST(a_position_that_cannot_be_is_dropped_and_the_host_is_lost_if_it_sends_no_other)
{
    static const char *const bodies[] = {
        "{\"number\": 2, \"unit\": 0, \"fed\": 0, \"since\": 0, \"weight\": 1, \"whole\": true}",
        "{\"number\": 2, \"unit\": -5, \"fed\": 0, \"since\": 0, \"weight\": 1, \"whole\": true}",
        "{\"number\": 2, \"unit\": 4294967295, \"fed\": 0, \"since\": 0, \"weight\": 1, \"whole\": true}",
        "{\"number\": 2, \"unit\": 3, \"fed\": -1, \"since\": 0, \"weight\": 1, \"whole\": true}",
        "{\"number\": 2, \"unit\": 3, \"fed\": 0, \"since\": \"x\", \"weight\": 1}",
        "{\"number\": 2, \"unit\": 3, \"fed\": 0, \"since\": 0, \"weight\": 16777217, \"whole\": true}",
        "{\"number\": 2, \"unit\": 3, \"fed\": 0, \"since\": 0}",
    };
    table all = table_of(3, 3, 1);

    fill(&all, 3);
    all.guest[1].mute = true;
    stand_up(&all.guest[2]);
    PASS_UNTIL(&all, all.guest[1].number == 2);
    for (size_t i = 0; i < CO_COUNT(bodies); i++)
        CHECK_OK(client_say(&all.guest[1].client, FRAME_POSITION, parsed(bodies[i])));
    calm(&all);
    CHECK(all.server->job.stage == FREEZING, "a view began");
    CHECK_OK(client_say(&all.guest[1].client, FRAME_POSITION, position_pack(2, &start, 0)));
    PASS_UNTIL(&all, table_runs(&all, 2, 2));
    table_close(&all);
}

TEST(a_place_of_a_run_is_given_again_only_when_no_unused_one_is_left)
{
    table all = table_of(1, 2, 1);
    uint64_t used = 0;

    fill(&all, 1);
    for (int i = 0; i < 70; i++) {
        uint32_t before = all.guest[0].number;
        guest *one = sit(&all, 1, start);
        PASS_UNTIL(&all, table_runs(&all, 2, before + 1));
        int place = one->client.place;
        CHECK(place > 0 && (i >= 63 || !(used >> place & 1)), "host %d gets place %d", i, place);
        used |= (uint64_t)1 << place;
        stand_up(one);
        PASS_UNTIL(&all, table_runs(&all, 1, before + 2));
    }
    table_close(&all);
}

TEST(a_host_that_comes_back_to_a_run_gets_its_own_place_or_none)
{
    table all = table_of(2, 4, 1);

    fill(&all, 2);
    guest *back = bring(&all, 2, start);
    back->client.place = 40; /* as a host that lost its keeper */
    CHECK_OK(client_hello(&back->client, "127.0.0.1"));
    PASS_UNTIL(&all, table_runs(&all, 3, 2));
    CHECK(back->client.place == 40, "place %d", back->client.place);
    guest *other = bring(&all, 3, start);
    other->client.place = 40;
    CHECK_OK(client_hello(&other->client, "127.0.0.1"));
    PASS_UNTIL(&all, other->refused);
    CHECK(test_contains(other->text, "another host has its place by now"), "%s", other->text);
    table_close(&all);
}

TEST(a_process_that_comes_back_before_its_loss_was_noticed_gets_in_at_its_second_attempt)
{
    table all = table_of(2, 4, 1);

    fill(&all, 2);
    uint64_t birth = all.guest[1].terms.birth;
    int place = all.guest[1].client.place;
    all.guest[1].here = false; /* its first connection hangs */
    for (int attempt = 0; attempt < 2; attempt++) {
        guest *back = bring(&all, 2, start);
        back->terms.birth = birth;
        back->client.place = place;
        snprintf(back->where.host, sizeof back->where.host, "b");
        CHECK_OK(client_hello(&back->client, "127.0.0.1"));
        PASS_UNTIL(&all, attempt ? table_runs(&all, 2, 2) : back->refused);
        if (!attempt)
            stand_up(back);
    }
    CHECK(all.guest[2].client.place == place && slices_of(&all.guest[2]) == 0, "place %d, %d slices",
          all.guest[2].client.place, slices_of(&all.guest[2]));
    table_close(&all);
}

TEST(no_host_beyond_the_last_place_of_a_run_is_taken)
{
    table all = table_of(2, 2, 1);
    co_roster *r;

    all.scene.terms.facts = NULL;
    all.scene.terms.views = true;
    all.scene.terms.max_hosts = 65;
    CHECK_FAILS(co_roster_open(&r, &all.scene.terms, &all.scene.where), CO_EINPUT, "64 hosts at most");
    all.scene.terms.max_hosts = 2;
    fill(&all, 2);
    guest *third = sit(&all, 2, start);
    PASS_UNTIL(&all, third->refused);
    CHECK(test_contains(third->text, "has all its hosts already") && all.guest[0].number == 1, "%s",
          third->text);
    table_close(&all);
}

/* --- facts ---------------------------------------------------------------------------------------------- */
static void facts_differ(const char *mine, const char *theirs, const char *what)
{
    table all = table_of(2, 2, 1);
    double began = co_now_s();

    all.scene.terms.facts = mine;
    table_open(&all, NULL, start);
    guest *other = bring(&all, 1, start);
    other->terms.facts = theirs;
    CHECK_OK(client_hello(&other->client, "127.0.0.1"));
    PASS_UNTIL(&all, other->refused && test_contains(all.guest[0].talk, "refused"));
    CHECK(test_contains(other->text, what) && test_contains(other->text, "host a (127.0.0.1:"), "%s",
          other->text);
    CHECK(test_contains(all.guest[0].talk, what) &&
              test_contains(all.guest[0].talk, "host b (127.0.0.1) was refused"),
          "%s", all.guest[0].talk);
    CHECK(co_now_s() - began < 1, "it took %g s", co_now_s() - began);
    table_close(&all);
}

TEST(facts_that_differ_are_refused_with_the_first_key_and_both_values_on_both_sides)
{
    facts_differ("{\"data\": \"sha256 12ab\", \"config.seed\": \"1\"}",
                 "{\"config.seed\": \"2\", \"data\": \"sha256 99fe\"}",
                 "data is not the same: a has sha256 12ab, b has sha256 99fe");
    facts_differ("{\"data\": \"x\", \"config.optim.lr\": \"0.1\"}",
                 "{\"data\": \"x\", \"config.optim.lr\": \"0.2\"}",
                 "config.optim.lr is not the same: a has 0.1, b has 0.2");
    facts_differ("{\"data\": \"x\", \"seed\": \"1\"}", "{\"data\": \"x\"}",
                 "seed is not the same: a has 1, b does not have it");
    facts_differ("{\"data\": \"x\"}", "{\"data\": \"x\", \"seed\": \"\"}",
                 "seed is not the same: a does not have it, b has nothing");
    facts_differ("{\"data\": \"x\"}", NULL, "data is not the same: a has x, b does not have it");
    facts_differ("{\"data\": \"x\"}", "{\"data\": \"\\u001b[2J\"}", "b has ?[2J");
}

TEST(facts_that_differ_far_behind_their_beginning_are_shown_from_there)
{
    char mine[400], theirs[400], pad[200];

    memset(pad, 'x', sizeof pad);
    snprintf(mine, sizeof mine, "{\"list\": \"%.150s1\"}", pad);
    snprintf(theirs, sizeof theirs, "{\"list\": \"%.150s2\"}", pad);
    facts_differ(mine, theirs, "a has ...xxxxxxxxxx1, b has ...xxxxxxxxxx2");
}

TEST(facts_that_are_too_long_or_no_texts_are_refused_before_a_host_joins)
{
    table all = table_of(2, 2, 1);
    size_t len = FACTS_MOST + 10;
    char *facts = co_alloc(len + 1);
    co_roster *r;

    memset(facts, 'x', len);
    memcpy(facts, "{\"a\": \"", 7);
    memcpy(facts + len - 2, "\"}", 3);
    all.scene.terms.views = true;
    all.scene.terms.facts = facts;
    CHECK_FAILS(co_roster_open(&r, &all.scene.terms, &all.scene.where), CO_EINPUT, "524298 bytes; 524288");
    all.scene.terms.facts = "{\"a\": 1}";
    CHECK_FAILS(co_roster_open(&r, &all.scene.terms, &all.scene.where), CO_EINPUT, "a is not a text");
    memcpy(facts + FACTS_MOST - 2, "\"}", 3);
    all.scene.terms.facts = facts; /* just short enough */
    fill(&all, 2);
    table_close(&all);
    co_free(facts);
}

TEST(a_training_and_a_job_of_workers_refuse_each_other)
{
    table all = table_of(2, 2, 1);

    table_open(&all, NULL, start);
    guest *other = bring(&all, 1, start);
    other->terms.views = false;
    CHECK_OK(client_hello(&other->client, "127.0.0.1"));
    PASS_UNTIL(&all, other->refused);
    CHECK(test_contains(other->text, "Every host must be started by the same command"), "%s", other->text);
    table_close(&all);
}

/* --- what a client takes -------------------------------------------------------------------------------- */
static json_t *good_view(co_roster_view *all)
{
    *all = (co_roster_view){.view = {.deal = {.view = 7, .hosts = 3, .me = 1, .writer = 0, .whole = 3},
                                     .held = 41,
                                     .giver = {-1, 0, -1},
                                     .feeder = {-1, -1, 1},
                                     .fed = {0, 0, 12},
                                     .anew = {false, false, true},
                                     .stops = true}};
    static const int from[] = {0, 9, 16, 16};
    for (int h = 0; h < 3; h++) {
        all->member[h] =
            (co_member){.id = 10 * h, .birth = UINT64_MAX - (uint64_t)h, .port = 5000 + h, .ranks = h + 1};
        snprintf(all->member[h].name, sizeof all->member[h].name, "n%d", h);
        snprintf(all->member[h].addr, sizeof all->member[h].addr, "10.0.0.%d", h);
        all->view.deal.id[h] = (uint8_t)(10 * h);
        all->view.deal.from[h + 1] = (int16_t)from[h + 1];
    }
    return view_pack(all);
}

TEST(a_view_goes_through_its_frame_unchanged)
{
    co_roster_view all, back;
    json_t *body = good_view(&all);

    CHECK_OK(view_unpack(&back, body, 7));
    json_decref(body);
    const co_view *was = &all.view, *is = &back.view;
    CHECK(was->deal.view == is->deal.view && was->deal.hosts == is->deal.hosts && was->deal.me == is->deal.me &&
              was->deal.writer == is->deal.writer && was->deal.whole == is->deal.whole &&
              was->held == is->held && was->stops == is->stops && was->deal.from[3] == is->deal.from[3],
          "the view is another one");
    for (int h = 0; h < 3; h++) {
        CHECK(was->deal.from[h] == is->deal.from[h] && was->deal.id[h] == is->deal.id[h] &&
                  was->giver[h] == is->giver[h] && was->feeder[h] == is->feeder[h] &&
                  was->fed[h] == is->fed[h] && was->anew[h] == is->anew[h],
              "member %d has another task", h);
        CHECK(all.member[h].id == back.member[h].id && all.member[h].birth == back.member[h].birth &&
                  all.member[h].port == back.member[h].port && all.member[h].ranks == back.member[h].ranks &&
                  strcmp(all.member[h].name, back.member[h].name) == 0 &&
                  strcmp(all.member[h].addr, back.member[h].addr) == 0,
              "member %d is another one", h);
    }
}

TEST(a_view_whose_numbers_contradict_each_other_is_refused)
{
    static const struct {
        int member; /* -1: the view itself */
        const char *key;
        long long value;
    } wrong[] = {{-1, "me", 3},    {-1, "me", -1},          {-1, "writer", 3}, {-1, "writer", 2},
                 {-1, "held", -1}, {-1, "held", 1ll << 33}, {0, "place", 64},  {0, "place", -1},
                 {0, "place", 10}, {1, "leaves", 257},      {1, "leaves", -1}, {2, "leaves", 1},
                 {0, "giver", 3},  {0, "giver", -2},        {0, "giver", 0},   {0, "giver", 2},
                 {2, "feeder", 2}, {2, "feeder", -1},       {0, "feeder", 1},  {2, "feeder", 127},
                 {2, "fed", -1},   {0, "port", 65536},      {0, "ranks", 0}};
    co_roster_view all, back;

    for (size_t i = 0; i < CO_COUNT(wrong); i++) {
        json_t *body = good_view(&all);
        json_t *where = wrong[i].member < 0
                            ? body
                            : json_array_get(json_object_get(body, "members"), (size_t)wrong[i].member);
        json_object_set_new(where, wrong[i].key, json_integer(wrong[i].value));
        test_note("%s of %d is %lld", wrong[i].key, wrong[i].member, wrong[i].value);
        CHECK_FAILS(view_unpack(&back, body, 7), CO_EFORMAT, "a view");
        json_decref(body);
    }
    json_t *body = good_view(&all), *members = json_object_get(body, "members");
    CHECK_FAILS(view_unpack(&back, body, 0), CO_EFORMAT, "a view");
    while (json_array_size(members) < 65)
        json_array_append(members, json_array_get(members, 0));
    CHECK_FAILS(view_unpack(&back, body, 7), CO_EFORMAT, "a view of 65 hosts");
    json_array_clear(members);
    CHECK_FAILS(view_unpack(&back, body, 7), CO_EFORMAT, "a view of 0 hosts");
    json_decref(body);
}
