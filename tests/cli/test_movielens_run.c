/* test_movielens_run.c -- runs on ratings of movies: what the folder keeps, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
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
