/* The check of data: each layout is recognised by its names, each fault becomes a sentence. */
#include "data/check.h"
#include "data/greys.h"

static const char *const pets[] = {"cat", "dog", NULL};

TEST(each_layout_is_recognised_by_its_file_names)
{
    static const struct {
        const char *line, *dir, *data;
    } rows[] = {
        {"mkdir a && : >a/digits.csv.gz", "a", "digits"},
        {"mkdir b && : >b/train-images-idx3-ubyte.gz", "b", "mnist"},
        {"mkdir -p c/MNIST/raw && : >c/MNIST/raw/train-images-idx3-ubyte", "c", "mnist"},
        {"mkdir d && : >d/data_batch_1.bin.xz", "d", "cifar10"},
        {"mkdir -p e/cifar-10-batches-bin", "e", "cifar10"},
        {"mkdir f && : >f/cifar-100-binary.tar.gz", "f", "cifar100"},
        {"mkdir g && : >g/train.bin && : >g/test.bin", "g", "cifar100"},
        {"mkdir -p h/train/cat h/val/cat", "h", "imagefolder"},
        {"mkdir -p i/cat i/dog", "i", "imagefolder"},
        {": >j.tar.xz", "j.tar.xz", "imagefolder"},
        {"mkdir -p k/val/images && : >k/val/val_annotations.txt", "k", "tinyimagenet"},
        {"mkdir -p l/train/airplane l/train/truck l/valid", "l", "cinic10"},
        {"mkdir -p m/train/n01440764 m/val", "m", "imagenet"},
        {": >n.txt", "n.txt", "text"},
        {"mkdir o && : >o/ratings.csv", "o", "movielens"},
        {"mkdir p && : >p/u.data", "p", "movielens"},
        {"mkdir q", "q", NULL},
        {"mkdir r && : >r/notes.pdf", "r", NULL},
        {":", "nowhere", NULL},
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        sh(rows[i].line);
        const co_data_layout *l = co_data_recognise(rows[i].dir);
        CHECK(rows[i].data ? l && strcmp(l->data, rows[i].data) == 0 : !l, "%s: %s, wanted %s", rows[i].line,
              l ? l->data : "nothing", rows[i].data);
        CHECK(!l || co_dataset_find(l->data), "no data=%s", l->data);
    }
}

/* A set with nothing wrong: no picture is twice. */
static void put_good(void)
{
    char path[128];

    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 30; i++) {
            snprintf(path, sizeof path, "d/%s/%s/%d.jpg", i < 20 ? "train" : "val", pets[c], i);
            put_jpeg(path, 8, 8, 10 + 4 * (30 * c + i));
        }
}

static co_data_report check(const char *dir)
{
    co_data_report r;

    CHECK_OK(co_data_check(&r, dir, NULL, NULL));
    return r;
}

TEST(a_good_folder_has_its_counts_and_no_problem)
{
    put_good();
    co_data_report r = check("d");
    CHECK(r.n_problems == 0, "%s", r.problems[0].text);
    CHECK(r.set->count[0] == 40 && r.set->count[1] == 20 && r.per_class[0][1] == 20 && r.per_class[1][0] == 10,
          "counts");
    /* greys 10 + 4 k for k of 0..19 and 30..49: mean 10 + 4 * 24.5 */
    CHECK(r.has_pixels && r.mean[0] > 107.0 / 255 && r.mean[0] < 109.0 / 255, "mean %g", r.mean[0] * 255);
    co_data_report_fini(&r);
}

TEST(each_fault_of_a_folder_becomes_one_problem_with_its_kind_and_count)
{
    static const struct {
        const char *line, *kind;
        uint64_t count;
        const char *says;
    } rows[] = {
        {"printf x >d/train/cat/3.jpg", "unreadable", 1,
         "1 sample cannot be read: d/train/cat/3.jpg: unsupported format"},
        {"for i in 1 2 3 4 5; do : >d/train/cat/$i.jpg; done; : >d/val/dog/21.jpg", "unreadable", 6,
         "the file is empty; and others. Fetch them again"},
        {"cp d/train/dog/5.jpg d/val/dog/x.jpg", "duplicate", 1,
         "1 pictures of val are in train too, pixel by pixel: val/dog/x.jpg = train/dog/5.jpg"},
        {"for i in $(seq 300); do cp d/val/cat/20.jpg d/val/cat/x$i.jpg; done", "open", 1,
         "310 of the 320 samples of val are of one class, 0 (cat): accuracy would mean nothing"},
        {"rm -r d/val/dog", "open", 1, "d/train has a class folder dog, d/val has none"},
        {"rm -r d/train/dog d/val/dog", "open", 1, "d/train has one class, the folder cat"},
        {"for c in cat dog; do printf x >d/val/$c/2; for f in d/val/$c/*.jpg; do : >$f; done; done",
         "unreadable", 20, "20 samples cannot be read"},
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        sh("rm -rf d");
        put_good();
        sh(rows[i].line);
        co_data_report r = check("d");
        CHECK(r.n_problems >= 1, "%s: no problem", rows[i].line);
        const co_data_problem *p = &r.problems[0];
        CHECK(strcmp(p->kind, rows[i].kind) == 0 && p->count == rows[i].count &&
                  test_contains(p->text, rows[i].says),
              "%s: %s %d: %s", rows[i].line, p->kind, (int)p->count, p->text);
        co_data_report_fini(&r);
    }
}

/* Only annotations can leave a class of train out of val. */
TEST(classes_that_val_lacks_are_counted_and_named)
{
    put_tiny();
    put_text("t/val/val_annotations.txt", "val_0.JPEG\tn03\nval_1.JPEG\tn01\nval_2.JPEG\tn01\n");
    co_data_report r = check("t");
    bool found = false;
    for (int i = 0; i < r.n_problems; i++)
        found |= strcmp(r.problems[i].kind, "missing_class") == 0 &&
                 strcmp(r.problems[i].text, "t: val has no sample of 1 of the 3 classes: n02") == 0;
    CHECK(found, "%s", r.n_problems ? r.problems[0].text : "no problem");
    co_data_report_fini(&r);
}

TEST(a_folder_that_is_nothing_known_is_refused_with_the_names_of_all_layouts)
{
    co_data_report r;

    sh("mkdir e");
    CHECK_FAILS(co_data_check(&r, "e", NULL, NULL), CO_EINPUT,
                "no data set that is known (tinyimagenet, cifar10");
    CHECK_FAILS(co_data_check(&r, "nowhere", NULL, NULL), CO_EINPUT, "nowhere: no such file or folder");
}

static co_err check_small(void *dir)
{
    co_data_report r;
    co_err err = co_data_check(&r, dir, NULL, NULL);

    if (err == CO_OK)
        co_data_report_fini(&r);
    return err;
}

/* Pictures are decoded into memory that ends the program when it is out, so here nothing is decoded. */
TEST(a_check_says_so_when_memory_is_out)
{
    put_good();
    sh("rm -r d/val/dog");
    test_each_alloc_fails(check_small, "d");
}
