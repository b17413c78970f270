/* test_names.c -- the program shows its names to the libraries that it loads when they are needed, so that
 * backtraces have them. A library that calls a function of its own by a name that we have, too, would call
 * ours. */
#include <stdlib.h>

#include "harness.h"

TEST(no_name_of_ours_is_one_of_the_libraries_that_are_loaded_when_needed)
{
#ifdef __SANITIZE_ADDRESS__
    test_skip("the sanitizer's own names are in the program");
#endif
    if (test_sh("command -v nm && command -v ldconfig").status != 0)
        test_skip("no nm or no ldconfig here (packages binutils, libc-bin)");
    test_run r = test_sh("nm -D --defined-only $COHORT | awk '{print $3}' | sort -u >ours; "
                         "ldconfig -p | awk "
                         "'/"
                         "lib(pmix|event_core-[0-9.]*|event-[0-9.]*|mpi|mpich|curl|hwloc|open-pal|open-rte|"
                         "nvidia-ml)\\.so\\./{print $NF}' | sort -u "
                         ">libraries; "
                         "for l in $(cat libraries); do nm -D --defined-only $l 2>/dev/null; done | awk "
                         "'{sub(/@.*/, \"\", $3); print $3}' | "
                         "sort -u >theirs; test -s libraries || echo none; comm -12 ours theirs");
    if (test_contains(r.out, "none\n"))
        test_skip("none of these libraries is here (packages libpmix2, libopenmpi3, libcurl4)");
    CHECK(r.out[0] == '\0', "give these another name, or make them static:\n%s", r.out);
    free(r.out);
}
