/* Faults that other programs pass over in silence: those that no other test covers. docs/faults.md has the
 * whole list. */
#include "cli/runs.h"
#include "data/pictures.h"

static void says(const char *line, const char *what)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == 0 && test_contains(r.out, what), "%s: status %d, wanted \"%s\": %s", line, r.status,
          what, r.out);
    free(r.out);
}

TEST(a_batch_per_rank_is_shown_as_the_global_batch_and_the_rate_is_not_scaled_in_silence)
{
    says("$COHORT plan data=digits model=mlp -b 16 trainer.devices=4 optim.lr=0.1 2>&1",
         "batch     global batch 64 = ");
    says("$COHORT plan data=digits model=mlp -b 16 trainer.devices=4 optim.lr=0.1 2>&1",
         "= 16 a rank x 4 ranks; optim.lr is not scaled with the ranks (by the linear rule it would be 0.4)");
    test_run r = test_sh("$COHORT plan data=digits model=mlp data.batch_size=64 trainer.devices=4 2>&1");
    CHECK(r.status == 0 && !test_contains(r.out, "linear rule"), "%s", r.out);
    free(r.out);
}

TEST(a_run_that_waits_for_its_data_says_so_and_for_what)
{
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "d/train/%c/%d.jpg", "ab"[i % 2], i);
        put_jpeg(path, 700, 700, 40 * i);
        snprintf(path, sizeof path, "d/val/%c/%d.jpg", "ab"[i % 2], i);
        put_jpeg(path, 8, 8, 40 * i);
    }
    says("$COHORT train data=imagefolder data.dir=d data.resize=8x8 model=linear data.batch_size=4 "
         "trainer.max_steps=54 "
         "trainer.devices=1 run.dir=r console=plain callbacks.model_checkpoint.enabled=false "
         "trainer.check_val_every_n_epoch=100 2>&1",
         "notice    data wait ");
}

/* The last column of the table of docs/faults.md names tests. */
TEST(every_test_that_the_table_of_silent_faults_names_is_there)
{
    test_run r = test_sh(
        "sed -n '/^## Silent faults/,$p' %s | sed -n 's/^| .* | \\([a-z0-9_, ]*\\) |$/\\1/p' | tr "
        "',' '\\n' | "
        "tr -d ' ' | grep _ | sort -u > names; n=$(wc -l < names); [ $n -ge 15 ] || echo only $n names; "
        "while read -r t; do grep -rqE \"^TEST[A-Z_]*\\($t\\>\" %s || echo no test $t; done < names",
        test_repo("docs/faults.md"), test_repo("tests"));
    CHECK(r.status == 0 && r.out[0] == '\0', "%s", r.out);
    free(r.out);
}
