/* Packs: the same set as the folder, and refused when a byte of head or index is wrong. */
#include "data/pack.h"
#include "data/greys.h"

static const char *const pets[] = {"cat", "dog", "eel", NULL};

static void pack(const char *dir, const char *out)
{
    co_pack_facts f;

    CHECK_OK(co_data_pack(&f, dir, out, NULL, NULL));
}

TEST(a_pack_is_the_same_set_as_its_folder_in_memory_or_not)
{
    static const struct {
        const char *set, *dir, *file;
    } rows[] = {{"tinyimagenet", "t", "t.pack"},
                {"imagefolder", "d", "d.pack"},
                {"imagefolder", "whole", "w.pack"},
                {"tinyimagenet", "t.tar", "tar.pack"}};

    put_tiny();
    put_classes("d/train", pets, 4);
    put_classes("d/val", pets, 2);
    put_classes("whole", pets, 10);
    sh("tar -cf t.tar t");
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        co_dataset *folder = open_as(rows[i].set, rows[i].dir);
        if (strcmp(rows[i].dir, "t.tar") == 0) /* an archive is recognised as an image folder */
            sh("rm -rf x && mkdir x && tar -xf t.tar -C x");
        pack(strcmp(rows[i].dir, "t.tar") == 0 ? "x/t" : rows[i].dir, rows[i].file);
        for (int memory = 0; memory < 2; memory++) {
            co_dataset *d;
            CHECK_OK(set_try(&d, rows[i].set, "dir", rows[i].file, "normalize", "none", "cache_mb",
                             memory ? "64" : "0", (char *)NULL));
            CHECK(strcmp(d->fingerprint, folder->fingerprint) == 0, "%s: another fingerprint", rows[i].file);
            for (int s = 0; s < 3; s++)
                CHECK(d->count[s] == folder->count[s] &&
                          check_split(d, (co_split)s) == check_split(folder, (co_split)s),
                      "%s: split %d", rows[i].file, s);
            co_dataset_close(d);
        }
        co_dataset_close(folder);
    }
}

static void train(char hash[65], const char *dir)
{
    test_run r =
        test_sh("$COHORT train data=tinyimagenet data.dir=%s model=cnn trainer.max_epochs=2 data.flip=true "
                "run.dir=r 2>&1 | sed -n 's/^weights_sha256 //p'; rm -rf r",
                dir);
    CHECK(strlen(r.out) == 65, "%s: %s", dir, r.out);
    memcpy(hash, r.out, 64);
    hash[64] = 0;
    free(r.out);
}

TEST(a_pack_trains_to_the_same_hash_as_the_folder)
{
    char folder[65], packed[65];

    put_tiny();
    test_run r = test_sh("$COHORT data pack t --out t.pack");
    CHECK(r.status == 0 && test_contains(r.out, "train with data=tinyimagenet data.dir=t.pack"), "%s", r.out);
    free(r.out);
    train(folder, "t");
    train(packed, "t.pack");
    CHECK(strcmp(folder, packed) == 0, "%s and %s", folder, packed);
    r = test_sh("$COHORT data check t.pack");
    CHECK(test_contains(r.out, "t.pack: Tiny ImageNet, data=tinyimagenet"), "%s", r.out);
    free(r.out);
}

/* Any change of head, index or length is noticed; the bytes of pictures are the fingerprint's matter. */
TEST(a_pack_with_any_byte_of_head_or_index_changed_or_cut_off_is_refused)
{
    char *bytes;
    size_t len, end;

    put_classes("d/train", pets, 1);
    put_classes("d/val", pets, 1);
    pack("d", "d.pack");
    CHECK_OK(co_fs_read(&bytes, &len, "d.pack", 1 << 20));
    end = 128 + 6 * 20;
    for (size_t i = 0; i < end; i++) {
        bool in_name_of_set = i >= 48 && i < 64; /* only says which data= it was made of */
        bytes[i] ^= 1;
        put_file("x.pack", bytes, len);
        bytes[i] ^= 1;
        if (!in_name_of_set)
            CHECK(try_as("imagefolder", "x.pack") == CO_EINPUT && test_contains(co_errmsg(), "x.pack"),
                  "byte %zu: %s", i, co_errmsg());
    }
    for (size_t cut = 0; cut < len; cut += cut < end ? 7 : 301) {
        put_file("x.pack", bytes, cut);
        CHECK(try_as("imagefolder", "x.pack") == CO_EINPUT && test_contains(co_errmsg(), "complete?"),
              "cut at %zu: %s", cut, co_errmsg());
    }
    put_file("x.pack",
             "not a pack, but long enough to have a head of one hundred and twenty-eight bytes, which is the "
             "least that a pack of pictures has",
             128);
    CHECK_FAILS(try_as("imagefolder", "x.pack"), CO_EINPUT, "x.pack is not a pack: make one with");
    free(bytes);
}

TEST(what_cannot_be_packed_is_refused_and_leaves_no_file)
{
    static const struct {
        const char *line, *dir, *out, *says;
    } rows[] = {
        {":", "nowhere", "o.pack", "nowhere: no such file or folder"},
        {"mkdir e", "e", "o.pack", "e is nothing known: folders of pictures are packed"},
        {"mkdir m && : >m/ratings.csv", "m", "o.pack", "m is data=movielens: folders of pictures are packed"},
        {":", "d", "o.bin", "a name that ends in .pack is needed"},
        {": >o.pack", "d", "o.pack", "it is there already"},
        {"rm -r o.pack d/val/eel", "d", "o.pack", "d/train has a class folder eel, d/val has none"},
        {"mkdir d/val/eel && ln -s nowhere d/val/eel/1.jpg && chmod 0 d/val/cat/0.jpg", "d", "gone/o.pack",
         "create gone/o.pack"},
        {"rm d/val/dog/0.jpg && mkfifo d/val/dog/0.jpg", "d", "o.pack", "d/val/dog/0.jpg is a named pipe"},
    };
    co_pack_facts f;

    put_classes("d/train", pets, 1);
    put_classes("d/val", pets, 1);
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        sh(rows[i].line);
        co_err err = co_data_pack(&f, rows[i].dir, rows[i].out, NULL, NULL);
        CHECK(err && test_contains(co_errmsg(), rows[i].says), "%s: %s", rows[i].line,
              err ? co_errmsg() : "packed");
    }
    sh("test -z \"$(ls -A | grep tmp)\"");
}
