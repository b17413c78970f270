/* test_movielens_run.c -- runs on ratings of movies: what the folder keeps, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "data/movielens.h"
#include "harness.h"

static const char *sample(void)
{
    return test_repo("tests/data/movielens/csv");
}

static test_run train(const char *more)
{
    test_run r =
        test_sh("$COHORT train data=movielens data.dir=%s model=factors run.dir=a trainer.max_epochs=2 %s",
                sample(), more);
    CHECK(r.status == 0, "%s", r.out);
    return r;
}

TEST(a_run_on_ratings_keeps_the_map_of_ids_and_refuses_data_with_other_rows)
{
    char *map;
    size_t len;

    train("");
    CHECK_OK(co_fs_read(&map, &len, "a/ids.csv", 1 << 20));
    CHECK(test_contains(map, "user,4,15,\n") && test_contains(map, "item,1,10,\"Comma, The (1995)\"\n"), "%s",
          map);
    free(map);
    test_run r = test_sh("mkdir x; sed s/^15,/2,/ %s/ratings.csv > x/ratings.csv; "
                         "$COHORT test ckpt_path=a --split val data.dir=x",
                         sample());
    CHECK(r.status == 2 &&
              test_contains(r.out, "ids.csv, line 3: the run has user,1,3 there, the data at hand user,1,2"),
          "%d %s", r.status, r.out);
    r = test_sh("$COHORT train run.dir=a ckpt_path=auto trainer.max_epochs=4 data.dir=x");
    CHECK(r.status == 2 && test_contains(r.out, "users and items would be mixed up"), "%d %s", r.status, r.out);
    r = test_sh("$COHORT train run.dir=a ckpt_path=auto trainer.max_epochs=4");
    CHECK(r.status == 0, "%s", r.out);
}

TEST(ratings_with_fewer_items_are_refused_by_the_first_id_that_differs)
{
    static const char *const uses[] = {
        "test ckpt_path=a --split val data.dir=y",
        "train run.dir=a ckpt_path=auto trainer.max_epochs=4 data.dir=y",
        "train data=movielens model=factors run.dir=b weights=a trainer.max_epochs=1 data.dir=y"};

    train("");
    CHECK(test_sh("mkdir y; awk -F, '$2 != 10' %s/ratings.csv > y/ratings.csv", sample()).status == 0,
          "no file");
    for (size_t i = 0; i < CO_COUNT(uses); i++) {
        test_run r = test_sh("$COHORT %s", uses[i]);
        CHECK(r.status == 2 && test_contains(r.out, "ids.csv, line") &&
                  test_contains(r.out, "the run has item,1,10 there") && !test_contains(r.out, "item.weight"),
              "%s: %d %s", uses[i], r.status, r.out);
        free(r.out);
    }
}

/* A figure of a run's summary.json: "metrics", "val/rmse". */
static double figure(const char *folder, const char *group, const char *name)
{
    char path[64];
    json_t *all;
    double value = -1;

    snprintf(path, sizeof path, "%s/summary.json", folder);
    CHECK_OK(co_json_read(&all, path, 1 << 20));
    CHECK(co_json_f64(json_object_get(all, group), name, &value), "%s has no %s", path, name);
    json_decref(all);
    return value;
}

TEST(ratings_have_an_rmse_that_can_be_watched)
{
    test_run r = train("callbacks.early_stopping.patience=5 callbacks.early_stopping.monitor=val/rmse");
    CHECK(test_contains(r.out, " rmse ") && test_contains(r.out, "best val/rmse "), "%s", r.out);
    double rmse = figure("a", "metrics", "val/rmse"), loss = figure("a", "metrics", "val/loss");
    CHECK(rmse * rmse > 0.999999 * loss && rmse * rmse < 1.000001 * loss, "rmse %g, loss %g", rmse, loss);
    r = test_sh("$COHORT test a --split val --json");
    CHECK(r.status == 0 && test_contains(r.out, "\"rmse\":"), "%s", r.out);
    r = test_sh("$COHORT train data=fake model=linear callbacks.model_checkpoint.monitor=val/rmse run.dir=b");
    CHECK(r.status == 2 &&
              test_contains(r.out, "\"val/rmse\" is not measured here; there are val/loss and val/mae"),
          "%s", r.out);
}

/* The weights and the rmse of two epochs with this many ranks, as text. */
static void sha_of(char out[80], const char *words, int ranks)
{
    test_run r =
        test_sh("$COHORT train data=movielens data.dir=%s data.batch_size=8 trainer.slices=4 %s "
                "trainer.max_epochs=20 trainer.devices=%d run.dir=r%d 2>&1 && sed -n "
                "'s/.*\"weights_sha256\": *\"\\([0-9a-f]*\\).*/SHA \\1/p' r%d/summary.json; rm -r r%d",
                sample(), words, ranks, ranks, ranks, ranks);
    const char *sha = strstr(r.out, "SHA ");
    CHECK(r.status == 0 && sha, "%s", r.out);
    snprintf(out, 80, "%.64s", sha + 4);
}

TEST(models_of_ratings_have_the_same_weights_for_one_two_and_three_ranks)
{
    static const char *const lines[] = {
        "model=factors optim=sparse_adam",
        "model=factors optim=adamw trainer=fsdp",
        "model=neumf model.dropout=0.2 optim=adam",
        "model=neumf optim=sgd data.split=last",
    };

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        char one[80], other[80];
        sha_of(one, lines[i], 1);
        for (int ranks = 2; ranks <= 3; ranks++) {
            sha_of(other, lines[i], ranks);
            CHECK(strcmp(one, other) == 0, "%s: %s with one rank, %s with %d", lines[i], one, other, ranks);
        }
    }
}

TEST(the_hit_rate_at_the_end_of_a_training_is_that_of_its_last_checkpoint)
{
    static const char *const lines[] = {"trainer.devices=2", "trainer=fsdp trainer.devices=2 model=neumf",
                                        "optim.ema=0.9 data.split=last"};

    for (size_t i = 0; i < CO_COUNT(lines); i++) {
        test_run r = train(lines[i]);
        CHECK(test_contains(r.out, "val hr@10 ") && test_contains(r.out, "  ndcg@10 "), "%s", r.out);
        double ndcg = figure("a", "metrics", "val/ndcg@10"), hit_rate = figure("a", "metrics", "val/hr@10");
        CHECK(ndcg > 0.3 && ndcg <= 1 && hit_rate == 1, "with five movies: %g, %g", hit_rate, ndcg);
        r = test_sh("$COHORT test a --split val --json; rm -r a");
        const char *at = strstr(r.out, "\"ndcg@10\":");
        CHECK(at && strtod(at + 10, NULL) == ndcg, "%s instead of %.17g", r.out, ndcg);
    }
}

TEST(predict_user_prints_titles_of_movies_that_the_user_has_not_rated)
{
    train("run.dir=null task_name=stars");
    test_run r =
        test_sh("$COHORT predict user=12 k=3"); /* the newest run; user 12 has rated Last (2010) alone */
    CHECK(r.status == 0 && test_contains(r.out, "run logs/stars/runs/") && test_contains(r.out, "  1  ") &&
              test_contains(r.out, "  3  ") && !test_contains(r.out, "  4  ") && !test_contains(r.out, "Last"),
          "%d %s", r.status, r.out);
    r = test_sh("$COHORT predict user=12 ckpt_path=$(ls -d logs/stars/runs/*) --json | sort");
    CHECK(test_contains(r.out, "\"item\":10,") && test_contains(r.out, "\"title\":\"Comma, The (1995)\"") &&
              test_contains(r.out, "\"place\":4") && !test_contains(r.out, "\"place\":5"),
          "%s", r.out);
    r = test_sh("$COHORT train data=fake_ratings model=factors trainer.max_steps=2 run.dir=f && "
                "$COHORT predict f user=999 k=2");
    CHECK(r.status == 0 && test_contains(r.out, "\n  2  "), "%s", r.out);
}

TEST(a_run_without_val_recommends_and_offers_only_what_works)
{
    test_run r = train("data.val_fraction=0");
    CHECK(test_contains(r.out, "predict ckpt_path=a user=1\n") && !test_contains(r.out, "--split val") &&
              !test_contains(r.out, " test ckpt_path"),
          "%s", r.out);
    r = test_sh("$COHORT predict ckpt_path=a user=12 k=2");
    CHECK(r.status == 0 && test_contains(r.out, "  2  "), "%d %s", r.status, r.out);
    r = test_sh("$COHORT test ckpt_path=a --split val");
    CHECK(r.status == 2 && test_contains(r.out, "data=movielens has nothing to validate or test with"), "%s",
          r.out);
    r = test_sh("$COHORT predict ckpt_path=a");
    CHECK(r.status == 2 && test_contains(r.out, "user=N recommends to user N, such as user=1\n"), "%s", r.out);
    r = test_sh("rm -r a");
    r = train("");
    CHECK(test_contains(r.out, "test ckpt_path=a --split val\n") &&
              test_contains(r.out, "predict ckpt_path=a user=1\n"),
          "%s", r.out);
    r = test_sh("$COHORT predict ckpt_path=a");
    CHECK(r.status == 2 && test_contains(r.out, "such as user=1; --split val predicts the ratings held out"),
          "%s", r.out);
}

TEST(predict_user_refuses_what_it_cannot_answer)
{
    static const struct {
        const char *words, *says;
    } bad[] = {
        {"a user=2 k=10", "user=2: the ratings have no such user"},
        {"a user=me", "user=me: a whole number from 0 to 4294967295 is needed"},
        {"a user=-1", "user=-1: a whole number"},
        {"a user=1 k=0", "k=0: a whole number from 1 to 100000 is needed"},
        {"a k=5", "k=5: for whom? user=NUMBER says it"},
        {"d user=1", "user=1 is for runs on ratings; data=digits has none"},
        {"user=1", "needs ckpt_path=FOLDER"},
    };

    train("");
    CHECK(test_sh("$COHORT train data=digits trainer.max_steps=1 run.dir=d").status == 0, "no run on digits");
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        test_run r = test_sh("$COHORT predict %s", bad[i].words);
        CHECK(r.status == 2 && test_contains(r.out, bad[i].says), "%s: %d %s", bad[i].words, r.status, r.out);
    }
}

TEST(cohort_alone_notices_ratings)
{
    test_run r = test_sh("cp -r %s ml-latest-small; $COHORT", sample());
    CHECK(r.status == 0 && test_contains(r.out, "train data=movielens data.dir=. "), "%s", r.out);
}

/* PyTorch's plain recipe (Adam, two epochs) reaches 0.851 on splits like these. */
TEST_WITHIN(experiment_movielens_reaches_its_rmse_on_five_splits, 120)
{
    const char *dir = real_movielens();
    double sum = 0, secs = 0;

    for (int seed = 0; seed < 5; seed++) {
        char folder[16];
        snprintf(folder, sizeof folder, "s%d", seed);
        test_run r = test_sh("$COHORT train experiment=movielens data.dir=%s data.split_seed=%d run.dir=%s",
                             dir, seed, folder);
        CHECK(r.status == 0, "%s", r.out);
        double rmse = figure(folder, "metrics", "val/rmse");
        test_note("split %d: rmse %.4f, mae %.4f, %.2f s from start to end", seed, rmse,
                  figure(folder, "metrics", "val/mae"), r.secs);
        test_note("         hr@10 %.4f, ndcg@10 %.4f", figure(folder, "metrics", "val/hr@10"),
                  figure(folder, "metrics", "val/ndcg@10"));
        sum += rmse;
        secs += r.secs;
    }
    test_note("mean of five splits: rmse %.4f, %.2f s", sum / 5, secs / 5);
    CHECK(sum / 5 <= 0.855, "mean rmse %.4f", sum / 5);
}
