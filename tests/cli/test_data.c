/* `cohort data` from the command line: output, JSON and exit status. */
#include "cli/runs.h"
#include "data/greys.h"

static char *run(int status, const char *line)
{
    test_run r = test_sh("%s", line);
    CHECK(r.status == status, "%s: status %d, wanted %d: %s", line, r.status, status, r.out);
    return r.out;
}

static void says(int status, const char *line, const char *what)
{
    char *out = run(status, line);
    CHECK(test_contains(out, what), "%s: %s, wanted %s", line, out, what);
    free(out);
}

TEST(data_check_and_stats_print_counts_and_problems_and_exit_1_when_something_is_wrong)
{
    put_tiny();
    sh("rm -r t/test"); /* the greys of val are those of train: three pictures are in both */
    says(1, "$COHORT data check t", "t: Tiny ImageNet, data=tinyimagenet");
    says(1, "$COHORT data check t",
         "train          9 samples, 3 classes of 3 to 3\nval            3 samples, 3 classes of 1 to 1");
    says(1, "$COHORT data check t", "problem: 3 pictures of val are in train too");
    says(1, "$COHORT data stats t", "0     goldfish                       3         1         0");
    says(1, "$COHORT data check --json t",
         "\"data\":\"tinyimagenet\",\"good\":false,\"classes\":[\"goldfish\",\"n02\",\"koala\"]");
    says(1, "$COHORT data check --json t", "\"kind\":\"duplicate\",\"count\":3");
    put_jpeg("t/val/images/val_0.JPEG", 8, 8, 57);
    put_jpeg("t/val/images/val_1.JPEG", 8, 8, 17);
    put_jpeg("t/val/images/val_2.JPEG", 8, 8, 37);
    says(0, "$COHORT data check t", "nothing is wrong");
    says(0, "$COHORT data check --json t", "\"problems\":[]");
}

TEST(data_refuses_lines_that_make_no_sense_with_status_2)
{
    sh("mkdir e");
    says(2, "$COHORT data", "cohort data check");
    says(2, "$COHORT data chek e", "did you mean check?");
    says(2, "$COHORT data check", "data check takes one folder: cohort data check");
    says(2, "$COHORT data check a b", "takes one folder");
    says(2, "$COHORT data check e", "no data set that is known");
    says(2, "$COHORT data check nowhere", "nowhere: no such file or folder");
    says(0, "$COHORT data --help", "what a folder holds");
}

TEST(training_runs_the_quick_part_and_refuses_a_val_that_is_one_class)
{
    put_classes("d/train", (const char *const[]){"cat", "dog", "eel", NULL}, 10);
    put_classes("d/val", (const char *const[]){"cat", "dog", "eel", NULL}, 1);
    sh("for i in $(seq 60); do cp d/val/eel/0.jpg d/val/eel/x$i.jpg; done");
    says(2, "$COHORT train data=imagefolder data.dir=d model=cnn run.dir=r",
         "61 of the 63 samples of val are of one class, 2 (eel): accuracy would mean nothing");
    CHECK(!co_fs_exists("r"), "a run folder was made");
}
