/* A new run does not wait for the disk before its first step, and a checkpoint is not ahead of its files. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* The line of the trace, from 1, on which this is found first; 0: nowhere. */
static int line_with(const char *pattern)
{
    test_run r = test_sh("grep -nE '%s' trace | head -1 | cut -d: -f1", pattern);
    int line = atoi(r.out);

    free(r.out);
    return line;
}

TEST(the_files_of_a_new_run_are_synced_after_its_ranks_have_begun_and_before_its_first_checkpoint)
{
    static const char *const files[] = {"config.yaml", "overrides.yaml", "config_tree.log", "header.json"};

    test_run have = test_sh("command -v strace && strace -o tried true");
    if (have.status != 0)
        test_skip("strace is not here, or may not trace");
    free(have.out);
    test_run r = test_sh("ASAN_OPTIONS=detect_leaks=0 strace -f -y -o trace -e "
                         "trace=fsync,clone,clone3,fork,rename,renameat,renameat2 $COHORT train "
                         "data=digits model=mlp trainer.devices=1 trainer.max_steps=3 trainer.eval_every=0 "
                         "test=false console=quiet run.dir=run");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    int begun = line_with("clone|fork"), saved = line_with("rename.*, .run/checkpoints/step_");

    CHECK(begun > 0 && saved > begun, "line %d: the first child; line %d: the checkpoint", begun, saved);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char pattern[64];
        snprintf(pattern, sizeof pattern, "fsync.*/run/%s>", files[i]);
        int synced = line_with(pattern);
        CHECK(synced > begun && synced < saved,
              "%s is synced on line %d; %d: the first child, %d: the checkpoint", files[i], synced, begun,
              saved);
    }
}
