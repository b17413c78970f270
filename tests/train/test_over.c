/* Several hosts, each a process with its own supervisor, ranks and carrier, over loopback: the same weights
 * as one host, whatever happens. */
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
    /* a machine so busy that it takes longer may deal the slices anew, or miss a sign of life */
    CHECK(end[0].views == 1 || end[0].wall_s > 8, "%d views", end[0].views);
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

/* The best validation is the first one, by a monitor turned round: the newcomer never saw it. */
TEST(a_host_that_joins_late_knows_the_best_validation_before_it_came)
{
    static const char *const words[] = {"model=cnn",
                                        "data=digits",
                                        "optim=adamw",
                                        "data.batch_size=64",
                                        "trainer.slices=16",
                                        "trainer.max_epochs=2",
                                        "trainer.val_check_interval=5",
                                        "callbacks.model_checkpoint.enabled=false",
                                        "callbacks.model_checkpoint.monitor=val/loss",
                                        "callbacks.model_checkpoint.mode=max",
                                        NULL};
    over_end end[OVER_HOSTS];
    over_scene s = {.words = words, .hosts = 1, .ranks = 1, .most = 2, .event = {{OVER_JOIN, 1, 8}}};

    over_run(&s, end);
    check_same(&s, end, 3);
    CHECK(end[0].best_step == 5, "the best is the first, not step %lld", (long long)end[0].best_step);
    CHECK(end[1].best_step == 5, "the newcomer's best is of step %lld", (long long)end[1].best_step);
}

TEST(two_hosts_that_join_at_a_time_are_fed_one_after_the_other)
{
    over_end end[OVER_HOSTS];
    over_scene s = {
        .words = digits, .hosts = 2, .ranks = 1, .most = 4, .event = {{OVER_JOIN, 2, 5}, {OVER_JOIN, 3, 5}}};

    over_run(&s, end);
    check_same(&s, end, 15);
}

/* A host that has ended stays until the others have: it has no ranks any more whose speed it could read. */
TEST(a_host_that_stays_for_the_others_does_not_read_the_speed_of_ranks_that_have_ended)
{
    over_end end[OVER_HOSTS];
    over_scene s = {.words = digits, .hosts = 2, .ranks = 2, .weigh_ms = 1};

    over_run(&s, end);
    check_same(&s, end, 3);
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

/* --- hosts that go wrong silently ----------------------------------------------------------------------- */
static const char *const verified[] = {"model=cnn",
                                       "data=digits",
                                       "optim=adamw",
                                       "data.batch_size=64",
                                       "trainer.slices=16",
                                       "trainer.max_epochs=4",
                                       "trainer.verify_every=10",
                                       "callbacks.model_checkpoint.enabled=false",
                                       NULL};

static void check_blamed(const over_scene *s, const char *says, int64_t before)
{
    over_end end[OVER_HOSTS];

    over_run(s, end);
    for (int h = 0; h < s->hosts; h++)
        CHECK(end[h].there && end[h].err == CO_EFAIL && strstr(end[h].why, says) && end[h].steps < before,
              "host %d, after step %lld: %s", h, (long long)end[h].steps, end[h].why);
}

TEST(a_bit_that_flips_on_one_of_three_hosts_is_found_and_the_host_is_named)
{
    over_scene s = {.words = verified, .hosts = 3, .ranks = 1, .flip_at = {0, 12, 0}};

    check_blamed(&s, "host h1 holds other weights than the others", 23);
}

TEST(a_bit_that_flips_on_one_of_two_hosts_is_found)
{
    over_scene s = {.words = verified, .hosts = 2, .ranks = 1, .flip_at = {0, 12}};

    check_blamed(&s, "hosts h0 and h1 hold different weights", 23);
}

TEST(a_host_that_computes_wrong_is_found_by_an_audit_and_named_by_three)
{
    over_scene s = {.words = verified, .hosts = 3, .ranks = 2, .spoil_from = {0, 0, 3}};

    check_blamed(&s, "host h2 computed a slice to another gradient than the others did", 13);
}

TEST(two_hosts_of_which_one_computes_wrong_disagree)
{
    over_scene s = {.words = verified, .hosts = 2, .ranks = 1, .spoil_from = {3, 0}};

    check_blamed(&s, "hosts h0 and h1 computed the same slice to different gradients", 13);
}
