/* Loading: another model is refused by its first differing tensor; every torn or altered file by its name. */
#include "ckpt/small.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

static void other(struct small *o, const char *first, co_shape shape)
{
    co_layout_init(&o->l);
    small_add(&o->l, "fc1.weight", CO_KIND_PARAM, CO_SHAPE(4, 5));
    small_add(&o->l, "fc1.bias", CO_KIND_PARAM, CO_SHAPE(4));
    small_add(&o->l, "bn.running_mean", CO_KIND_STAT, CO_SHAPE(4));
    small_add(&o->l, "bn.num_batches_tracked", CO_KIND_COUNTER, CO_SCALAR);
    small_add(&o->l, first, CO_KIND_PARAM, shape);
    co_layout_close(&o->l);
    for (int p = 0; p <= SMALL_MOMENTS; p++)
        o->part[p] = co_array(o->l.count, sizeof(float));
}

static void refused(struct small *o, const char *words)
{
    memset(o->part[0], 0x5a, o->l.count * 4);
    CHECK_FAILS(co_ckpt_load("r/last", &o->l, o->part[0], SMALL_MOMENTS, small_moments, o->part + 1, NULL),
                CO_EINPUT, words);
    CHECK_FAILS(co_ckpt_fits("r/last", &o->l, SMALL_MOMENTS, small_moments), CO_EINPUT, words);
    for (size_t i = 0; i < o->l.count * 4; i++)
        CHECK(((unsigned char *)o->part[0])[i] == 0x5a, "the state was touched");
    small_fini(o);
}

TEST(another_model_is_refused_by_its_first_differing_tensor)
{
    struct small s, o;
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "x", 1));
    CHECK_OK(co_ckpt_fits("r/last", &s.l, SMALL_MOMENTS, small_moments));
    CHECK_OK(co_ckpt_fits("r/last", &s.l, 0, NULL));
    small_init(&o, 6); /* in name order the first of three that differ */
    refused(&o, "checkpoint r/last is of another model: tensor bn.running_mean is [4] there, [6] here");
    other(&o, "scale", CO_SHAPE(1));
    refused(&o, "checkpoint r/last is of another model: tensor scale is [] there, [1] here");
    other(&o, "zebra", CO_SCALAR);
    refused(&o, "another model: tensor scale is in it, but not here");
    other(&o, "conv1.weight", CO_SHAPE(2, 2));
    refused(&o, "another model: tensor conv1.weight is not in it");
    small_fini(&s);
}

TEST(what_is_no_checkpoint_is_refused_with_what_is_wrong)
{
    struct small s;
    co_ckpt_meta meta;
    small_init(&s, 4);
    CHECK_FAILS(small_load(&s, "nowhere", NULL), CO_EINPUT, "checkpoint nowhere: there is no such folder");
    CHECK(mkdir("empty", 0777) == 0, "%m");
    CHECK_FAILS(co_ckpt_verify("empty"), CO_EFORMAT, "checkpoint empty: manifest.json is missing");
    CHECK_OK(small_save(&s, "r", "x", 1));
    CHECK(rename("r/x/optim.safetensors", "r/x/optim") == 0, "%m");
    CHECK_FAILS(co_ckpt_verify("r/x"), CO_EFORMAT, "checkpoint r/x: optim.safetensors: missing");
    CHECK(mkfifo("r/x/optim.safetensors", 0600) == 0, "%m");
    CHECK_FAILS(co_ckpt_verify("r/x"), CO_EFORMAT, "optim.safetensors: not a file");
    CHECK(unlink("r/x/manifest.json") == 0 && mkfifo("r/x/manifest.json", 0600) == 0, "%m");
    CHECK_FAILS(co_ckpt_read_meta(&meta, "r/x"), CO_EFORMAT, "manifest.json is not a file");
    small_fini(&s);
}

/* Refused with the file's name, and never by anything but a code that says "use another source". */
static void check_refused(struct small *s, const char *file, const char *how, uint64_t where)
{
    co_err err = small_load(s, "r/x", NULL); /* compares every bit if it loads */
    if (err == CO_OK)
        return;
    CHECK((err == CO_EFORMAT || err == CO_EIO) && test_contains(co_errmsg(), file),
          "%s %s %llu: error %d, %s", file, how, (unsigned long long)where, (int)err, co_errmsg());
}

static const char *const files[] = {"model.safetensors", "optim.safetensors", "manifest.json"};

TEST(a_checkpoint_cut_at_any_length_is_refused)
{
    struct small s;
    small_init(&s, 4);
    for (size_t f = 0; f < CO_COUNT(files); f++) {
        char path[64];
        struct stat st;
        CHECK_OK(small_save(&s, "r", "x", 1));
        snprintf(path, sizeof path, "r/x/%s", files[f]);
        CHECK(stat(path, &st) == 0, "%m");
        CHECK(st.st_size <= 4096, "%s has %lld bytes: take a smaller model", files[f], (long long)st.st_size);
        for (off_t n = st.st_size - 1; n >= 0; n--) {
            CHECK(truncate(path, n) == 0, "%m");
            CHECK(small_load(&s, "r/x", NULL) != CO_OK, "%s cut to %lld loads", files[f], (long long)n);
            check_refused(&s, files[f], "cut to", (uint64_t)n);
        }
    }
    small_fini(&s);
}

TEST(a_checkpoint_with_any_bit_flipped_is_refused)
{
    struct small s;
    uint64_t rnd = 99;
    int loaded = 0;
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "x", 1));
    for (size_t f = 0; f < CO_COUNT(files); f++) {
        char path[64], *bytes;
        size_t len;
        snprintf(path, sizeof path, "r/x/%s", files[f]);
        CHECK_OK(co_fs_read(&bytes, &len, path, 1 << 20));
        int fd = open(path, O_WRONLY);
        for (int i = 0; i < 1000; i++) {
            uint32_t bit = test_u32(&rnd) % (uint32_t)(8 * len);
            char x = (char)(bytes[bit / 8] ^ 1 << bit % 8);
            CHECK(pwrite(fd, &x, 1, bit / 8) == 1, "%m");
            loaded += small_load(&s, "r/x", NULL) == CO_OK;
            check_refused(&s, files[f], "bit", bit);
            CHECK(pwrite(fd, &bytes[bit / 8], 1, bit / 8) == 1, "%m");
        }
        close(fd);
        co_free(bytes);
    }
    CHECK(loaded == 0, "%d of 3000 altered checkpoints loaded", loaded);
    CHECK_OK(small_load(&s, "r/x", NULL));
    small_fini(&s);
}

TEST(an_altered_file_is_named_as_such)
{
    struct small s;
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "x", 1));
    int fd = open("r/x/model.safetensors", O_WRONLY);
    CHECK(fd >= 0 && pwrite(fd, "\x7f\x01", 2, 400) == 2, "%m");
    close(fd);
    CHECK_FAILS(small_load(&s, "r/x", NULL), CO_EFORMAT,
                "checkpoint r/x: model.safetensors: SHA-256 differs from the manifest (altered or torn)");
    small_fini(&s);
}

/* Ours, read by the package that everybody else reads with. */
TEST(the_reference_package_reads_a_checkpoint)
{
    struct small s;
    const char *python = getenv("COHORT_PYTHON"), *script = test_repo("tests/golden/check_safetensors.py");
    if (!python)
        test_skip("COHORT_PYTHON is not set: a Python with the packages safetensors and numpy");
    small_init(&s, 4);
    CHECK_OK(small_save(&s, "r", "x", 1));
    co_ckpt_meta meta = {0};
    CHECK_OK(co_ckpt_read_meta(&meta, "r/x"));
    for (int f = 0; f < 2; f++) {
        test_run r = test_sh("'%s' '%s' model r/x/%s", python, script, files[f]);
        CHECK(r.status == 0, "status %d:\n%s", r.status, r.out);
        CHECK(f == 1 || test_contains(r.out, meta.weights_sha256), "weights_sha256 is %s, theirs:\n%s",
              meta.weights_sha256, r.out);
        for (int i = 0; i < s.l.n; i++) {
            const co_entry *e = &s.l.entry[i];
            char hex[65], line[256], shape[64];
            if (f == 1 && e->kind != CO_KIND_PARAM)
                continue;
            co_sha256_of(s.part[f ? 2 : 0] + e->offset, e->count * 4, hex);
            snprintf(line, sizeof line, "%s%s %s %s %s\n", f ? "exp_avg_sq." : "", e->name,
                     e->dtype == CO_I64 ? "int64" : "float32", co_shape_text(shape, sizeof shape, &e->shape),
                     hex);
            CHECK(test_contains(r.out, line), "no line %s in:\n%s", line, r.out);
        }
        free(r.out);
    }
    small_fini(&s);
}
