/* Accidents of a host that its own line asks for (fault.host_*): the weights are those of an undisturbed
 * run. */
#include <string.h>

#include "harness.h"
#include "train/over.h"

/* Runs it. The hosts in `expected` end with the weights of one host alone; nothing is left of the others. */
static void run_to_one_hash(over_scene *s, over_end *end, uint64_t expected)
{
    char sha[65];
    over_story story;

    s->story = &story;
    over_alone(s->words, sha);
    over_run(s, end);
    CHECK(story.orphans == 0, "%d processes were left", story.orphans);
    for (int h = 0; h < s->hosts; h++)
        if (expected >> h & 1)
            CHECK(end[h].there && !end[h].err && strcmp(end[h].sha, sha) == 0,
                  "host %d: %.16s after step %lld, not %.16s: %s", h, end[h].sha, (long long)end[h].steps,
                  sha, end[h].why);
}

TEST(a_host_that_rehearses_its_death_is_killed_after_that_step_and_the_others_go_on)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = over_digits, .hosts = 3, .ranks = 1, .own = {[2] = {"fault.host_kill=10"}}};

    run_to_one_hash(&s, end, 3);
    CHECK(!end[2].there, "the third host was not killed");
    CHECK(end[0].views - end[0].redeals == 2, "%d views", end[0].views);
}

TEST(a_host_that_rehearses_a_cut_is_lost_to_the_others_and_stops)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = over_digits,
                    .hosts = 2,
                    .ranks = 2,
                    .own = {[1] = {"fault.host_cut=10", "fault.host_cut_s=1.6"}}};

    run_to_one_hash(&s, end, 1);
    CHECK(end[0].views - end[0].redeals == 2, "%d views", end[0].views);
    CHECK(end[1].there && !end[1].err && end[1].status == CO_STATUS_STOPPED && end[1].steps >= 10 &&
              end[1].steps < end[0].steps,
          "host 1: status %d after step %lld: %s", end[1].status, (long long)end[1].steps, end[1].why);
}

/* Shorter than the silence after which a host counts as lost. */
TEST(a_host_that_rehearses_a_short_cut_stays_a_member)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = over_digits,
                    .hosts = 2,
                    .ranks = 1,
                    .own = {[1] = {"fault.host_cut=10", "fault.host_cut_s=0.2"}}};

    run_to_one_hash(&s, end, 3);
    CHECK(end[0].views - end[0].redeals == 1, "%d views", end[0].views);
}

TEST_LONG(a_host_that_rehearses_to_be_slow_takes_longer_and_changes_no_weight)
{
    over_end end[OVER_HOSTS], slow[OVER_HOSTS];
    over_scene s = {.words = over_digits, .hosts = 2, .ranks = 1};

    run_to_one_hash(&s, end, 3);
    s.own[1][0] = "fault.host_slow=6";
    run_to_one_hash(&s, slow, 3);
    CHECK(slow[0].wall_s > 1.5 * end[0].wall_s, "%.2f s, and %.2f s with a slow host", end[0].wall_s,
          slow[0].wall_s);
}

TEST(a_host_that_stays_slow_is_named_once_with_the_reason)
{
    over_end end[OVER_HOSTS];
    over_scene s = {
        .words = over_digits, .hosts = 2, .ranks = 1, .weigh_ms = 200, .own = {[1] = {"fault.host_slow=4"}}};

    run_to_one_hash(&s, end, 3);
    for (int h = 0; h < 2; h++)
        CHECK(end[h].slow_lines == 1 && strstr(end[h].slow, "host h1 ") &&
                  strstr(end[h].slow, "it is slow on purpose"),
              "host %d heard %d lines: %s", h, end[h].slow_lines, end[h].slow);
}
