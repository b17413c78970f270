/* A picture that one host cannot read is read by another: the weights are those of a run whose pictures are
 * all good. If no host can read it, it counts as unreadable, as on one host. */
#include "data/pictures.h"

#include "train/over.h"

#define WORDS(dir, on_error)                                                                                 \
    {                                                                                                        \
        "model=cnn", "data=imagefolder", "optim=sgd", "data.dir=" dir, "data.on_error=" on_error,            \
            "data.batch_size=32", "data.eval_slice=8", "trainer.slices=8", "trainer.max_epochs=3",           \
            "test=false", "callbacks.model_checkpoint.enabled=false", NULL                                   \
    }

static const char *const good[] = WORDS("good", "stop");
static const char *const bad[] = WORDS("bad", "skip");

static void put_set(const char *dir, bool damaged)
{
    static const char *const classes[] = {"ant", "bee", "cat", "dog", NULL};
    char path[128];

    snprintf(path, sizeof path, "%s/train", dir);
    put_classes(path, classes, 40);
    snprintf(path, sizeof path, "%s/val", dir);
    put_classes(path, classes, 16);
    snprintf(path, sizeof path, "%s/train/bee/17.jpg", dir);
    CHECK(!damaged || truncate(path, 200) == 0, "%m");
    snprintf(path, sizeof path, "%s/val/cat/3.jpg", dir);
    CHECK(!damaged || truncate(path, 200) == 0, "%m");
}

static void run_to(const over_scene *s, const char *sha, int least_views, int most_views)
{
    over_end end[OVER_HOSTS];

    over_run(s, end);
    for (int h = 0; h < s->hosts; h++)
        CHECK(end[h].there && !end[h].err && strcmp(end[h].sha, sha) == 0,
              "%s, host %d: %.16s after step %lld, not %.16s: %s", s->name, h, end[h].sha,
              (long long)end[h].steps, sha, end[h].why);
    int views = end[0].views - end[0].redeals;
    CHECK(views >= least_views && views <= most_views, "%s: %d views", s->name, views);
}

TEST_WITHIN(a_picture_that_one_host_cannot_read_is_read_by_another, 120)
{
    static const over_scene rows[] = {
        {.name = "the guest", .words = good, .hosts = 2, .ranks = 1, .own = {[1] = {"data.dir=bad"}}},
        {.name = "the writer", .words = good, .hosts = 2, .ranks = 2, .own = {[0] = {"data.dir=bad"}}},
        {.name = "two of three",
         .words = good,
         .hosts = 3,
         .ranks = 1,
         .own = {[0] = {"data.dir=bad"}, [2] = {"data.dir=bad"}}}};
    char sha[65];

    put_set("good", false);
    put_set("bad", true);
    over_alone(good, sha);
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        run_to(&rows[i], sha, 2, 100);
}

TEST(a_picture_that_no_host_can_read_is_left_out_as_on_one_host)
{
    over_scene s = {.name = "both", .words = bad, .hosts = 2, .ranks = 1};
    char sha[65];

    put_set("bad", true);
    over_alone(bad, sha);
    run_to(&s, sha, 3, 5); /* each of the two pictures is offered once, by both, in three epochs */
}
