/* Every data set with every kind of bad input: the sentence, the exit status, and nothing changed or written.
 * */
#include "cli/runs.h"

#include <unistd.h>

#include "data/greys.h"

#include "data/data.h"

#define RATINGS                                                                                              \
    "userId,movieId,rating,timestamp\\n1,1,3.0,1\\n1,2,4.0,2\\n2,1,5.0,3\\n2,3,0.5,4\\n3,2,2.0,5\\n3,3,1.0," \
    "6\\n"
#define TRAIN      "train trainer.max_steps=1 trainer.devices=1 console=quiet run.dir=r "
#define PAIRS(dir) TRAIN "data=pairs data.dir=" dir
#define RATE       TRAIN "data=movielens data.dir=m model=factors"
#define CNN        " model=cnn model.width=4"

/* `line` makes the set of the row bad; before it, good ones lie in d (an image folder), t (a Tiny ImageNet),
 * i (an ImageNet), and m (a MovieLens). `words` is what is typed then. */
static const struct row {
    const char *set, *line, *words;
    int status;
    const char *says;
} rows[] = {
    {"digits", ":", TRAIN "data=digits data.val_fraction=2 model=mlp", 2,
     "data=digits has no key \"val_fraction\""},
    {"digits", ":", TRAIN "data=digits model=factors", 2, "model=factors"},
    {"digits", ":", TRAIN "data=digits model=mlp model.num_classes=1000 run.dir=ok", 0,
     "the number of classes come from the data"},
    {"fake", ":", TRAIN "data=fake data.inputs=0 model=mlp", 2, "data.inputs: 0 is out of range"},
    {"fake", ":", TRAIN "data=fake data.n=many model=mlp", 2, "data.n"},
    {"fake_images", ":", TRAIN "data=fake_images data.size=0" CNN, 2, "data.size: 0 is out of range"},
    {"fake_images", ":", TRAIN "data=fake_images data.classes=1" CNN, 2, "data.classes: 1 is out of range"},
    {"fake_ratings", ":", TRAIN "data=fake_ratings data.users=0 model=factors", 2,
     "data.users: 0 is out of range"},
    {"fake_ratings", ":", TRAIN "data=fake_ratings model=mlp", 2, "model=mlp"},
    {"movielens", "rm m/*", RATE, 2, "m has none of ratings.csv, ratings.dat (ml-1m) and u.data (ml-100k)"},
    {"movielens", "sed -i 's/,/;/g' m/ratings.csv", RATE, 2,
     "line 1: its fields are parted by ';'; ',' is needed"},
    {"movielens", "cut -d, -f1,2,4 m/ratings.csv >x && mv x m/ratings.csv", RATE, 2,
     "line 1: there is no column rating"},
    {"movielens", "sed -i 's/,5.0,/,7.0,/' m/ratings.csv", RATE, 2, "line 4: the rating is"},
    {"movielens", "sed -i 's/,4.0,/,good,/' m/ratings.csv", RATE, 2, "line 3: the rating is \"good\""},
    {"movielens", "sed -i 's/^2,1,/2,/' m/ratings.csv", RATE, 2, "line 4"},
    {"movielens", "head -1 m/ratings.csv >x && mv x m/ratings.csv", RATE, 2, "has a header and no ratings"},
    {"movielens", "tail -1 m/ratings.csv >>m/ratings.csv", RATE, 2, "user 3 rates movie 3 twice"},
    {"text", ": >x.txt", TRAIN "data=text data.path=x.txt model=lm", 2, "x.txt is empty"},
    {"text", "printf 'a\\377b\\n' >x.txt", TRAIN "data=text data.path=x.txt model=lm", 2,
     "is not UTF-8: byte 0xff"},
    {"text", "echo one >x.txt", TRAIN "data=text data.path=x.txt model=lm", 2, "has 1 line of text; at least 3"},
    {"text", ":", TRAIN "data=text data.path=d model=lm", 2, "d is a folder, not a file"},
    {"text", ":", TRAIN "data=text data.path=none.txt model=lm", 2, "none.txt: No such file"},
    {"pairs", "mkdir e", PAIRS("e"), 2, "e: no file of pairs"},
    {"pairs", "mkdir e; : >e/x.tsv", PAIRS("e"), 2, "e/x.tsv has no pairs of sentences: it is empty"},
    {"pairs", "mkdir e; echo 'a cat;un gatto' >e/x.tsv", PAIRS("e"), 2,
     "fields are parted by tabs, not by semicolons"},
    {"pairs", "mkdir e; printf 'a\\377\\tb\\n' >e/x.tsv", PAIRS("e"), 2, "its en side is not UTF-8: byte 0xff"},
    {"pairs", "mkdir e; printf 'a\\nb\\n' >e/B.en-it.en; echo a >e/B.en-it.it", PAIRS("e"), 2,
     "both files need the same number of lines"},
    {"pairs", "mkdir e; printf 'a\\tb\\nc\\td\\n' >e/x.tsv; echo '{\"version\":\"1.0\"}' >e/t.json",
     PAIRS("e") " data.tokenizer_src=e/t.json", 2, "it has no \"model\""},
    {"cifar10", "mkdir e", TRAIN "data=cifar10 data.dir=e" CNN, 2, "e has neither data_batch_1.bin"},
    {"cifar10", "mkdir e; : >e/data_batch_1.bin", TRAIN "data=cifar10 data.dir=e" CNN, 2,
     "data_batch_2.bin is missing"},
    {"cifar10", "mkdir -p e/cifar-10-batches-py", TRAIN "data=cifar10 data.dir=e" CNN, 2,
     "the version for Python"},
    {"cifar100", "mkdir e", TRAIN "data=cifar100 data.dir=e" CNN, 2, "e has neither train.bin"},
    {"cifar100", "mkdir e; : >e/train.bin; : >e/test.bin", TRAIN "data=cifar100 data.dir=e" CNN, 2, "train.bin"},
    {"mnist", "mkdir e", TRAIN "data=mnist data.dir=e" CNN, 2, "e has no t"},
    {"mnist",
     "mkdir e; for f in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do echo "
     "no pictures, but text >e/$f-ubyte; done",
     TRAIN "data=mnist data.dir=e" CNN, 2, "an idx file of pictures with 00000803"},
    {"imagefolder", "mkdir e", TRAIN "data=imagefolder data.dir=e" CNN, 2, "e has no pictures"},
    {"imagefolder", "rm -r d/val", TRAIN "data=imagefolder data.dir=d/train/cat" CNN, 2, "in no class folder"},
    {"imagefolder", "rm -r d/val/dog d/val/eel", TRAIN "data=imagefolder data.dir=d" CNN, 2,
     "has none: both need the same"},
    {"imagefolder", "for i in $(seq 60); do cp d/val/eel/0.jpg d/val/eel/x$i.jpg; done",
     TRAIN "data=imagefolder data.dir=d" CNN, 2, "samples of val are of one class"},
    {"imagefolder", "head -c 300 d/train/cat/0.jpg >x && mv x d/train/cat/0.jpg", "data check d", 1,
     "1 sample cannot be read: d/train/cat/0.jpg"},
    {"imagefolder", ":", TRAIN "data=imagefolder data.dir=t" CNN, 2, "use data=tinyimagenet"},
    {"tinyimagenet", "rm t/val/val_annotations.txt", TRAIN "data=tinyimagenet data.dir=t" CNN, 2,
     "no val_annotations.txt"},
    {"tinyimagenet", "sed -i 's/n0[0-9]/n01/' t/val/val_annotations.txt",
     TRAIN "data=tinyimagenet data.dir=t" CNN, 2, "all 3 pictures of t/val are of class n01"},
    {"tinyimagenet", "echo junk >t/val/images/val_1.JPEG", "data check t", 1, "val_1.JPEG"},
    {"cinic10", "mkdir e", TRAIN "data=cinic10 data.dir=e" CNN, 2, "e has no pictures"},
    {"cinic10", ":", TRAIN "data=cinic10 data.dir=d" CNN, 2, "d/train has no class folder airplane"},
    {"imagenet", "rm -r i/val", TRAIN "data=imagenet data.dir=i" CNN, 2,
     "i has no folder val: is the download complete?"},
    {"imagenet", "rm -r i/val/n01440764", TRAIN "data=imagenet data.dir=i" CNN, 2, "i/val has none"},
};

static void put_good_sets(void)
{
    put_classes("d/train", (const char *const[]){"cat", "dog", "eel", NULL}, 4);
    put_classes("d/val", (const char *const[]){"cat", "dog", "eel", NULL}, 1);
    put_classes("i/train", (const char *const[]){"n01440764", "n01443537", NULL}, 2);
    put_classes("i/val", (const char *const[]){"n01440764", "n01443537", NULL}, 1);
    put_tiny();
    succeeds("mkdir m && printf '" RATINGS "' >m/ratings.csv");
}

TEST_WITHIN(every_data_set_refuses_bad_input_with_a_sentence_and_leaves_all_files_as_they_were, 120)
{
    char home[4096], cache[4200];

    CHECK(getcwd(home, sizeof home), "%m");
    snprintf(cache, sizeof cache, "%s/cache", home);
    setenv("COHORT_CACHE", cache, 1);
    CHECK(mkdir("good", 0777) == 0 && chdir("good") == 0, "%m");
    put_good_sets();
    CHECK(chdir(home) == 0, "%m");
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        const struct row *row = &rows[i];
        bool as_it_was = i > 0 && strcmp(row->line, ":") == 0 && strcmp(rows[i - 1].line, ":") == 0;
        test_run r =
            test_sh("%scd row && { %s; } || exit 99; sum() { cksum $(find d t i m e x.txt -type f "
                    "2>/dev/null) | cksum; }; "
                    "a=$(sum); $COHORT %s; s=$?; [ \"$a\" = \"$(sum)\" ] || echo FILES CHANGED; exit $s",
                    as_it_was ? "" : "rm -rf row; cp -r good row; ", row->line, row->words);
        CHECK(r.status == row->status && test_contains(r.out, row->says),
              "%s, after %s: status %d, wanted %d: %s", row->words, row->line, r.status, row->status, r.out);
        CHECK(!test_contains(r.out, "FILES CHANGED"), "%s, after %s: files changed: %s", row->words,
              row->line, r.out);
        CHECK(!co_fs_exists("row/r"), "%s: a run folder was made", row->words);
        free(r.out);
    }
}

TEST(every_data_set_has_rows_in_the_table_of_bad_inputs)
{
    for (int i = 0; co_datasets[i]; i++) {
        int n = 0;
        for (size_t k = 0; k < CO_COUNT(rows); k++)
            n += strcmp(rows[k].set, co_datasets[i]->name) == 0;
        CHECK(n >= 2, "data=%s has %d rows of bad inputs", co_datasets[i]->name, n);
    }
}
