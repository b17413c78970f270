/* blame.json is written whole, and for its owner alone. */
#include "proc/blame.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "harness.h"

TEST(blame_json_is_for_its_owner_alone)
{
    umask(022);
    CHECK_OK(co_blame_write_take(".", "run7", json_pack("{s:s}", "what", "it broke")));
    test_run r = test_sh("stat -c %%a blame.json; cat blame.json; ls");
    CHECK(test_contains(r.out, "600\n{\n  \"run_id\": \"run7\",\n  \"what\": \"it broke\"\n}\nblame.json\n"),
          "%s", r.out);
    free(r.out);
    CHECK_FAILS(co_blame_write_take("absent", "run7", json_object()), CO_EIO, "absent");
    CHECK(co_blame_write_take(".", "run7", NULL) == CO_ENOMEM, "no facts: no memory");
}

TEST(what_a_failed_job_leaves_in_the_temporary_folder_is_for_its_owner_alone)
{
    test_run r = test_sh("umask 022; TMPDIR=$PWD $COHORT launch --no-python sh -c 'echo secret; exit 3';"
                         " stat -c '%%a %%n' cohort_*; stat -c %%a cohort_*/*/blame.json");
    CHECK(test_contains(r.out, "\n700 cohort_") && test_contains(r.out, "\n600\n"), "%s", r.out);
    free(r.out);
}
