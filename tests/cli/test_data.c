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

TEST(data_stats_of_ratings_prints_figures_that_check_does_not)
{
    char line[512];
    const char *folder = test_repo("tests/data/movielens/csv");
    /* 12 ratings whose stars add up to 38; five users rate 1, 1, 3, 3 and 4 of five movies. */
    static const char *const wanted[] = {
        "12 ratings of 5 movies by 5 users: 48 % of all pairs of a user and a movie\n",
        "mean  3.1667 stars\nstd   1.4044\n",
        "given from 1970-01-01 to 1970-01-01\n",
        "of a user                1         3         4\n",
        "of a movie               2         2         3\n",
        "2.5                      0      0.00\n3.0                      3     25.00  ####",
    };

    snprintf(line, sizeof line, "$COHORT data stats %s", folder);
    for (size_t i = 0; i < CO_COUNT(wanted); i++)
        says(0, line, wanted[i]);
    snprintf(line, sizeof line, "$COHORT data stats --json %s", folder);
    says(0, line, "\"ratings\":{\"count\":12,\"users\":5,\"movies\":5,");
    says(0, line, "\"per_user\":{\"least\":1,\"median\":3.0,\"most\":4}");
    says(0, line, "\"first_s\":50,\"last_s\":2000");
    snprintf(line, sizeof line, "$COHORT data check %s", folder);
    char *out = run(0, line);
    CHECK(!test_contains(out, "mean"), "check prints figures: %s", out);
    free(out);
}

TEST(ratings_without_times_have_no_time_range_in_their_figures)
{
    sh("mkdir m; printf 'userId,movieId,rating\\n1,7,2.5\\n1,8,3.5\\n2,7,3.0\\n2,9,3.0\\n' > m/ratings.csv");
    says(0, "$COHORT data stats m", "of a user                2         2         2\n");
    char *out = run(0, "$COHORT data stats m");
    CHECK(!test_contains(out, "given from"), "%s", out);
    free(out);
}

TEST(one_user_is_singular)
{
    sh("mkdir r && printf 'userId,movieId,rating\n1,1,4\n1,2,4\n1,3,2\n1,4,5\n1,5,4\n' > r/ratings.csv");
    says(0, "$COHORT data stats r", "5 ratings of 5 movies by 1 user: ");
}

TEST(the_median_of_an_even_number_of_users_is_between_two_counts)
{
    sh("mkdir m; printf 'userId,movieId,rating\\n1,7,2.5\\n2,7,3.5\\n2,8,3.0\\n' > m/ratings.csv");
    says(0, "$COHORT data stats m", "of a user                1       1.5         2\n");
    says(0, "$COHORT data stats --json m", "\"per_user\":{\"least\":1,\"median\":1.5,\"most\":2}");
}

TEST(json_lines_are_pairs_only_if_their_first_lines_hold_pairs)
{
    sh("mkdir p q o && echo '{\"translation\": {\"de\": \"Eins\", \"fr\": \"Un\"}}' > o/x.jsonl"
       " && echo '{\"id\": 1, \"en\": \"One\"}' > p/x.jsonl && echo '{\"en\": \"Two\", \"it\": \"Due\"}' >> "
       "p/x.jsonl"
       " && echo '{\"file\": \"a.jpg\", \"id\": \"7\", \"label\": \"cat\"}' > q/notes.jsonl");
    says(1, "$COHORT data check p", "data=pairs");
    says(1, "$COHORT data check o", "it has no text named \"en\" (it has de, fr)");
    says(2, "$COHORT data check q",
         "q: q/notes.jsonl has JSON lines of file, id, label, which are no pairs of sentences. Those are an "
         "object a "
         "line: {\"en\": ");
    says(2, "$COHORT data check q/notes.jsonl", "JSON lines of file, id, label, which are no pairs");
    sh("echo '[1,' > q/notes.jsonl");
    says(2, "$COHORT data check q", "q: line 1 of q/notes.jsonl is no JSON. ");
    sh("echo '5' > q/notes.jsonl");
    says(2, "$COHORT data check q", "q/notes.jsonl has JSON lines of nothing");
    sh(": > q/notes.jsonl");
    says(2, "$COHORT data check q", "q: q/notes.jsonl holds no line that can be read");
    put_classes("q/train", (const char *const[]){"cat", "dog", NULL}, 2);
    put_classes("q/val", (const char *const[]){"cat", "dog", NULL}, 1);
    says(1, "$COHORT data check q", "q: image folder, data=imagefolder\ntrain          4 samples");
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
         "data=imagefolder: d: 61 of the 63 samples of val are of one class, 2 (eel): accuracy would mean "
         "nothing. Is "
         "val in class folders? `cohort data check d` says more");
    CHECK(!co_fs_exists("r"), "a run folder was made");
}

TEST(a_checkpoint_for_other_classes_is_refused_with_the_folder_that_has_them)
{
    put_classes("two/train", (const char *const[]){"cat", "dog", NULL}, 4);
    put_classes("two/val", (const char *const[]){"cat", "dog", NULL}, 1);
    put_classes("three/train", (const char *const[]){"cat", "dog", "eel", NULL}, 4);
    put_classes("three/val", (const char *const[]){"cat", "dog", "eel", NULL}, 1);
    free(run(0, "$COHORT train data=imagefolder data.dir=three data.resize=8 data.crop=8 model=cnn run.dir=r "
                "trainer.max_epochs=1 data.batch_size=4"));
    says(2, "$COHORT test r data.dir=two --split val",
         "is [3] there, [2] here; the data here (data=imagefolder, two) have 2 classes");
    says(2, "$COHORT train run.dir=r ckpt_path=auto trainer.max_epochs=2 data.dir=two",
         "the data here (data=imagefolder, two) have 2 classes; it was made with model=cnn");
    says(2,
         "$COHORT train weights=r/checkpoints/last/model.safetensors data=imagefolder data.dir=two "
         "data.resize=8 "
         "data.crop=8 model=cnn run.dir=s",
         "lets it start anew; the data here (data=imagefolder, two) have 2 classes");
    /* Mistakes that are not about the classes say nothing about them. */
    static const struct {
        const char *words, *why;
    } others[] = {
        {"data.dir=three weights=r/checkpoints/last/model.safetensors model.width=16", "is [32"},
        {"data.dir=two weights=r/checkpoints/last/model.safetensors model.width=16", "is [32"},
        {"data.dir=two weights=r/checkpoints/last/model.safetensors weights_skip=nothing.*",
         "no tensor is called"},
        {"data.dir=two weights=pointer.safetensors", "pointer.safetensors"},
    };
    sh("printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 9\\n' > "
       "pointer.safetensors");
    for (size_t i = 0; i < CO_COUNT(others); i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "$COHORT train data=imagefolder data.resize=8 data.crop=8 model=cnn run.dir=s %s",
                 others[i].words);
        char *out = run(2, line);
        CHECK(test_contains(out, others[i].why) && !test_contains(out, "have 2 classes") &&
                  !test_contains(out, "have 3 classes"),
              "row %zu: %s", i, out);
        free(out);
    }
}
