/* Several hosts, each a process with its own supervisor, ranks and carrier, over loopback: the same weights as one
 * host, whatever happens. */
#include <string.h>

#include "harness.h"
#include "train/over.h"

static const char *const digits[] = {"model=cnn",
                                     "data=digits",
                                     "optim=adamw",
                                     "data.batch_size=64",
                                     "trainer.slices=16",
                                     "trainer.max_epochs=2",
                                     "callbacks.model_checkpoint.enabled=false",
                                     NULL};

/* Every host that ended by itself has the weights of one host alone. */
static void check_same(const over_scene *scene, const over_end *end, uint64_t expected)
{
    char sha[65];

    over_alone(scene->words, sha);
    for (int h = 0; h < OVER_HOSTS; h++) {
        bool there = expected >> h & 1;
        CHECK(end[h].there == there, "host %d: %s", h, end[h].there ? "is there" : "is not there");
        if (!there)
            continue;
        CHECK(!end[h].err, "host %d: %s", h, end[h].why);
        CHECK(strcmp(end[h].sha, sha) == 0, "host %d: %.16s after step %lld, not %.16s", h, end[h].sha,
              (long long)end[h].steps, sha);
    }
}

TEST(two_hosts_train_to_the_weights_of_one)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = digits, .hosts = 2, .ranks = 1};

    over_run(&s, end);
    check_same(&s, end, 3);
    CHECK(end[0].views == 1, "%d views", end[0].views);
}

TEST(three_hosts_without_tls_train_to_the_weights_of_one)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = digits, .hosts = 3, .ranks = 2, .plain = true};

    over_run(&s, end);
    check_same(&s, end, 7);
}

TEST(a_host_that_is_killed_changes_no_weight)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = digits, .hosts = 3, .ranks = 1, .event = {{OVER_KILL, 2, 10}}};

    over_run(&s, end);
    check_same(&s, end, 3);
    CHECK(end[0].views == 2, "%d views", end[0].views);
}

TEST(a_rank_and_a_carrier_that_are_killed_change_no_weight)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = digits,
                    .hosts = 2,
                    .ranks = 2,
                    .event = {{OVER_KILL_RANK, 1, 8}, {OVER_KILL_CARRIER, 1, 15}, {OVER_KILL_CARRIER, 0, 22}}};

    over_run(&s, end);
    check_same(&s, end, 3);
}

TEST(a_host_that_joins_in_the_middle_takes_part_and_changes_no_weight)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = digits, .hosts = 1, .ranks = 1, .most = 2, .event = {{OVER_JOIN, 1, 5}}};

    over_run(&s, end);
    check_same(&s, end, 3);
    CHECK(end[0].views >= 3, "%d views: alone, with a newcomer, with two that work", end[0].views);
}

TEST(a_stop_on_one_host_stops_all_at_the_same_step)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = digits, .hosts = 2, .ranks = 1, .event = {{OVER_STOP, 1, 12}}};

    over_run(&s, end);
    for (int h = 0; h < 2; h++)
        CHECK(end[h].there && end[h].status == CO_STATUS_STOPPED && end[h].steps == end[0].steps,
              "host %d: status %d after step %lld: %s", h, end[h].status, (long long)end[h].steps, end[h].why);
    CHECK(strcmp(end[0].sha, end[1].sha) == 0, "one state");
}
