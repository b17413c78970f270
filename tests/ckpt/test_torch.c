/* Files of torch.save: real ones give the tensors that torch wrote; damaged, foreign and hostile ones give an
 * error. tests/golden/make_pth.py made the real ones. */
#include "ckpt/small.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/fs.h"
#include "base/json.h"
#include "ckpt/torch_int.h"

/* --- what torch wrote ----------------------------------------------------------------------------------- */
static json_t *golden(const char *file)
{
    json_t *all = NULL;

    CHECK_OK(co_json_read(&all, test_repo("tests/golden/pth.json"), 1 << 20));
    json_t *one = json_incref(json_object_get(all, file));
    CHECK(one, "pth.json has no %s", file);
    json_decref(all);
    return one;
}

static void check_bytes(const char *name, const json_t *want, const co_st_tensor *t, const uint8_t *bytes)
{
    const json_t *shape = json_object_get(want, "shape");
    const char *hex = co_json_str(want, "hex");

    CHECK(want, "tensor %s is not expected", name);
    CHECK(strcmp(t->dtype_name, co_json_str(want, "dtype")) == 0, "%s: %s", name, t->dtype_name);
    CHECK((size_t)t->shape.nd == json_array_size(shape), "%s: %d dimensions", name, t->shape.nd);
    for (int i = 0; i < t->shape.nd; i++)
        CHECK(t->shape.d[i] == json_integer_value(json_array_get(shape, (size_t)i)), "%s: size %d", name, i);
    CHECK(strlen(hex) == 2 * t->len, "%s: %llu bytes", name, (unsigned long long)t->len);
    for (size_t i = 0; i < t->len; i++) {
        char two[3];
        snprintf(two, sizeof two, "%02x", bytes[i]);
        CHECK(memcmp(two, hex + 2 * i, 2) == 0, "%s: byte %zu is %s", name, i, two);
    }
}

/* The file has exactly the tensors of pth.json. */
static void check_torch(torch_file *f, json_t *want)
{
    CHECK((size_t)torch_count(f) == json_object_size(want), "%d tensors", torch_count(f));
    for (int i = 0; i < torch_count(f); i++) {
        const co_st_tensor *t = torch_at(f, i);
        uint8_t *bytes = co_alloc((size_t)t->len);
        CHECK_OK(torch_read(f, t, bytes));
        check_bytes(t->name, json_object_get(want, t->name), t, bytes);
        co_free(bytes);
    }
}

static const char *const files[] = {"small.pth", "kinds.pth", "lightning.ckpt", "script.pth", "objects.pth"};

static const char *golden_path(const char *file)
{
    static char path[200];

    snprintf(path, sizeof path, "tests/golden/pth/%s", file);
    return test_repo(path);
}

TEST(files_of_torch_save_give_the_tensors_that_torch_wrote)
{
    for (size_t i = 0; i < CO_COUNT(files); i++) {
        json_t *want = golden(files[i]);
        torch_file *f = NULL;
        CHECK_OK(torch_open(&f, golden_path(files[i]), &(co_import_how){.drop_objects = true}));
        CHECK_OK(torch_check(f));
        check_torch(f, want);
        torch_close(f);
        json_decref(want);
    }
}

TEST(imported_files_are_safetensors_with_the_same_tensors)
{
    static const struct {
        const char *held_by, *prefix;
        int left_out;
    } told[] = {{"", "", 0},
                {"", "", 0},
                {"state_dict", "net.", 0},
                {"state_dict", "module._orig_mod.", 0},
                {"model_state_dict", "", 0}};

    for (size_t i = 0; i < CO_COUNT(files); i++) {
        json_t *want = golden(files[i]);
        co_import_facts facts;
        co_st_file *f = NULL;
        uint8_t bytes[1024];
        int fd;
        unlink("out.safetensors");
        CHECK_OK(co_weights_import(golden_path(files[i]), "out.safetensors",
                                   &(co_import_how){.drop_objects = true}, &facts));
        CHECK(strcmp(facts.held_by, told[i].held_by) == 0 && strcmp(facts.prefix, told[i].prefix) == 0 &&
                  facts.left_out == told[i].left_out && (size_t)facts.tensors == json_object_size(want),
              "%s: \"%s\" \"%s\" %d %d", files[i], facts.held_by, facts.prefix, facts.left_out, facts.tensors);
        CHECK_OK(co_st_open(&f, "out.safetensors"));
        /* co_st_read has fewer dtypes */
        CHECK((fd = open("out.safetensors", O_RDONLY | O_CLOEXEC)) >= 0, "%m");
        CHECK(co_st_count(f) == facts.tensors, "%d", co_st_count(f));
        for (int k = 0; k < co_st_count(f); k++) {
            const co_st_tensor *t = co_st_at(f, k);
            CHECK(t->len <= sizeof bytes, "%s", t->name);
            CHECK(t->len == 0 || t->offset % (uint64_t)(co_st_dtype_bits(t->dtype_name) / 8) == 0,
                  "%s at %llu", t->name, (unsigned long long)t->offset);
            CHECK(pread(fd, bytes, (size_t)t->len, (off_t)t->offset) == (ssize_t)t->len, "%s: %m", t->name);
            check_bytes(t->name, json_object_get(want, t->name), t, bytes);
        }
        close(fd);
        co_st_close(f);
        json_decref(want);
    }
}

TEST(an_import_never_replaces_a_file_and_leaves_nothing_when_it_fails)
{
    CHECK_OK(co_fs_write_atomic("there", "x", 1));
    CHECK_FAILS(co_weights_import(golden_path("small.pth"), "there", NULL, NULL), CO_EIO, "create there");
    CHECK_FAILS(co_weights_import(golden_path("objects.pth"), "new", NULL, NULL), CO_EINPUT,
                "asks for __main__.Own: only tensors and plain values are read");
    CHECK_FAILS(co_weights_import("there", "new", NULL, NULL), CO_EINPUT, "it is no zip archive");
    CHECK_FAILS(co_weights_import("nowhere", "new", NULL, NULL), CO_EINPUT, "there is no such file");
    CHECK_OK(co_weights_import(golden_path("small.pth"), "a.safetensors", NULL, NULL));
    CHECK_FAILS(co_weights_import("a.safetensors", "new", NULL, NULL), CO_EINPUT,
                "is a safetensors file already");
    CHECK(!co_fs_exists("new"), "something is left");
}

TEST(a_prefix_on_request_chooses_the_tensors)
{
    co_import_facts facts;

    CHECK_OK(co_weights_import(golden_path("kinds.pth"), "out", &(co_import_how){.prefix = "dtype."}, &facts));
    CHECK(facts.tensors == 10 && facts.left_out == 11 && strcmp(facts.prefix, "dtype.") == 0, "%d %d",
          facts.tensors, facts.left_out);
    CHECK_FAILS(co_weights_import(golden_path("kinds.pth"), "no", &(co_import_how){.prefix = "dtypo."}, NULL),
                CO_EINPUT, "no tensor whose name begins with \"dtypo.\"");
    /* an empty one keeps names as they are */
    CHECK_OK(co_weights_import(golden_path("lightning.ckpt"), "raw", &(co_import_how){.prefix = ""}, &facts));
    CHECK(facts.tensors == 5 && facts.prefix[0] == '\0', "%d \"%s\"", facts.tensors, facts.prefix);
}

TEST(weights_load_from_a_file_of_torch_save)
{
    struct small s;
    small_init(&s, 4);
    float *state = co_array(s.l.count, sizeof *state);
    static const char *const fits[] = {"small.pth", "lightning.ckpt", "script.pth"};

    for (size_t i = 0; i < CO_COUNT(fits); i++) {
        memset(state, 0, s.l.count * sizeof *state);
        CHECK_OK(co_weights_load(golden_path(fits[i]), &s.l, NULL, state));
        const co_entry *weight = co_layout_find(&s.l, "fc1.weight");
        for (int k = 0; k < 20; k++)
            CHECK(state[weight->offset + (size_t)k] == (float)((k * 37) % 101 - 50) / 8, "%s: [%d]", fits[i],
                  k);
        CHECK(state[co_layout_find(&s.l, "scale")->offset] == 0.5f, "%s: scale", fits[i]);
        int64_t steps;
        memcpy(&steps, &state[co_layout_find(&s.l, "bn.num_batches_tracked")->offset], sizeof steps);
        CHECK(steps == 7, "%s: %lld", fits[i], (long long)steps);
    }
    CHECK_FAILS(co_weights_load(golden_path("kinds.pth"), &s.l, NULL, NULL), CO_EINPUT,
                "tensor bn.running_mean of the model is not in it");
    CHECK_FAILS(co_weights_load(golden_path("objects.pth"), &s.l, NULL, NULL), CO_EINPUT,
                "asks for __main__.Own");
    co_free(state);
    small_fini(&s);
}

/* --- damage --------------------------------------------------------------------------------------------- */
/* The same tensors, or an error; never other tensors. True: an error. */
static bool refuses(const void *bytes, size_t len, json_t *want)
{
    torch_file *f = NULL;

    if (torch_parse(&f, bytes, len, "damaged", NULL) != CO_OK)
        return true;
    bool bad = torch_check(f) != CO_OK;
    if (!bad)
        check_torch(f, want);
    torch_close(f);
    return bad;
}

TEST(every_cut_of_a_file_of_torch_save_is_refused)
{
    json_t *want = golden("lightning.ckpt");
    char *bytes;
    size_t len;

    CHECK_OK(co_fs_read(&bytes, &len, golden_path("lightning.ckpt"), 1 << 20));
    CHECK(!refuses(bytes, len, want), "%s", co_errmsg());
    for (size_t n = 0; n < len; n++) {
        void *cut = co_alloc(n); /* of that size, so that ASan sees a byte too far */
        memcpy(cut, bytes, n);
        CHECK(refuses(cut, n, want), "cut to %zu bytes", n);
        co_free(cut);
    }
    co_free(bytes);
    json_decref(want);
}

TEST(every_flipped_bit_of_a_file_of_torch_save_gives_an_error_or_the_same_tensors)
{
    static const char *const some[] = {"small.pth", "kinds.pth"};

    for (size_t k = 0; k < CO_COUNT(some); k++) {
        json_t *want = golden(some[k]);
        char *bytes;
        size_t len, refused = 0;
        CHECK_OK(co_fs_read(&bytes, &len, golden_path(some[k]), 1 << 20));
        for (size_t i = 0; i < 8 * len; i++) {
            bytes[i / 8] = (char)(bytes[i / 8] ^ 1 << i % 8);
            refused += refuses(bytes, len, want);
            bytes[i / 8] = (char)(bytes[i / 8] ^ 1 << i % 8);
        }
        test_note("%s: %zu of %zu flipped bits were noticed, the others mean nothing", some[k], refused,
                  8 * len);
        /* more than half of a file is not padding */
        CHECK(refused > 4 * len, "%zu of %zu", refused, 8 * len);
        co_free(bytes);
        json_decref(want);
    }
}

/* --- archives made here --------------------------------------------------------------------------------- */
typedef struct archive {
    uint8_t bytes[4096], directory[2048];
    size_t n, n_directory;
    int entries;
    /* 1: sizes and places are in zip64 fields, as in archives above 4 GB; 2: the field is too short */
    int wide;
} archive;

static void number(uint8_t *to, size_t *n, uint64_t x, int bytes)
{
    co_le_put(to + *n, x, bytes);
    *n += (size_t)bytes;
}

static void text(uint8_t *to, size_t *n, const void *from, size_t len)
{
    memcpy(to + *n, from, len);
    *n += len;
}

static void archive_add(archive *a, const char *name, const void *bytes, size_t len)
{
    uint64_t crc = crc32(0, bytes, (uInt)len), at = a->n;

    text(a->bytes, &a->n, "PK\3\4\0\0\0\0\0\0\0\0\0\0", 14);
    number(a->bytes, &a->n, crc, 4);
    number(a->bytes, &a->n, len, 4);
    number(a->bytes, &a->n, len, 4);
    number(a->bytes, &a->n, strlen(name), 4); /* no extra field */
    text(a->bytes, &a->n, name, strlen(name));
    text(a->bytes, &a->n, bytes, len);
    size_t field = a->wide == 1 ? 24 : a->wide == 2 ? 16 : 0;
    uint64_t narrow = 0xffffffff;
    text(a->directory, &a->n_directory, "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    number(a->directory, &a->n_directory, crc, 4);
    number(a->directory, &a->n_directory, field ? narrow : len, 4);
    number(a->directory, &a->n_directory, field ? narrow : len, 4);
    number(a->directory, &a->n_directory, strlen(name), 2);
    number(a->directory, &a->n_directory, field ? 4 + field : 0, 2);
    text(a->directory, &a->n_directory, "\0\0\0\0\0\0\0\0\0\0", 10);
    number(a->directory, &a->n_directory, field ? narrow : at, 4);
    text(a->directory, &a->n_directory, name, strlen(name));
    if (field) {
        number(a->directory, &a->n_directory, 1, 2);
        number(a->directory, &a->n_directory, field, 2);
        number(a->directory, &a->n_directory, len, 8);
        number(a->directory, &a->n_directory, len, 8);
        number(a->directory, &a->n_directory, at, field == 24 ? 8 : 0);
    }
    a->entries++;
}

static void archive_end(archive *a)
{
    size_t at = a->n;

    text(a->bytes, &a->n, a->directory, a->n_directory);
    text(a->bytes, &a->n, "PK\5\6\0\0\0\0", 8);
    number(a->bytes, &a->n, (uint64_t)a->entries, 2);
    number(a->bytes, &a->n, (uint64_t)a->entries, 2);
    number(a->bytes, &a->n, a->n_directory, 4);
    number(a->bytes, &a->n, at, 4);
    number(a->bytes, &a->n, 0, 2);
}

/* A file with this pickle and one storage, data/0, of 16 bytes. */
static void make_file(archive *a, const char *pickle, size_t len)
{
    *a = (archive){0};
    archive_add(a, "m/data.pkl", pickle, len);
    archive_add(a, "m/data/0", "0123456789abcdef", 16);
    archive_end(a);
}

static co_err parse_pickle(const char *pickle, size_t len, bool drop_objects)
{
    static archive a;
    torch_file *f = NULL;

    make_file(&a, pickle, len);
    co_err err = torch_parse(&f, a.bytes, a.n, "evil.pth", &(co_import_how){.drop_objects = drop_objects});
    torch_close(err ? NULL : f);
    return err;
}

/* A pickle as a C text; NULs inside are kept. */
#define PICKLE(text) (text), sizeof(text) - 1

TEST(a_pickle_that_would_run_something_is_refused_by_name)
{
    static archive a;

    CHECK_FAILS(parse_pickle(PICKLE("\x80\2cos\nsystem\nX\t\0\0\0touch ran\x85R."), false), CO_EINPUT,
                "evil.pth asks for os.system: only tensors and plain values are read");
    CHECK_FAILS(parse_pickle(PICKLE("\x80\2cnets\nNet\n)\x81}b."), false), CO_EINPUT,
                "whole object, such as torch.save(model) writes, and no state dict; save that:");
    CHECK_FAILS(parse_pickle(PICKLE("\x80\2}X\1\0\0\0wcnets\nNet\n)\x81s."), false), CO_EINPUT,
                "--drop-objects");
    CHECK_FAILS(parse_pickle(PICKLE("\x80\2c__builtin__\neval\nX\1\0\0\0001\x85R."), false), CO_EINPUT,
                "asks for __builtin__.eval:");
    CHECK_FAILS(parse_pickle(PICKLE("\x80\2}X\1\0\0\0wcposix\nsystem\nX\t\0\0\0touch ran\x85Rs."), false),
                CO_EINPUT, "asks for posix.system:");
    /* names that are nearly on the list */
    CHECK_FAILS(parse_pickle(PICKLE("\x80\2ctorch\n_rebuild_tensor_v2\n)R."), false), CO_EINPUT,
                "asks for torch._rebuild_tensor_v2:");
    CHECK_FAILS(parse_pickle(PICKLE("\x80\2cos\n\x1b[2Jsys\n)R."), false), CO_EINPUT, "asks for os.?[2Jsys:");
    /* on request the value is dropped; it is not run then either */
    CHECK_FAILS(parse_pickle(PICKLE("\x80\2cos\nsystem\nX\t\0\0\0touch ran\x85R."), true), CO_EINPUT,
                "holds no state dict");
    make_file(&a, PICKLE("\x80\2cos\nsystem\nX\t\0\0\0touch ran\x85R."));
    CHECK_OK(co_fs_write_atomic("evil.pth", a.bytes, a.n));
    test_run r =
        test_sh("for f in '' --drop-objects; do $COHORT ckpt import $f evil.pth; echo status $?; done; ls");
    CHECK(test_contains(r.out, "evil.pth asks for os.system"), "%s", r.out);
    CHECK(!test_contains(r.out, "ran") && !test_contains(r.out, "status 0"), "%s", r.out);
    free(r.out);
}

/* A state dict with one tensor "w" over the storage of 4 floats: offset, sizes and strides as opcodes. */
#define TENSOR(offset, sizes, strides)                                                                       \
    "\x80\2}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"  \
    "0X\3\0\0\0cpuK\4tQ" offset sizes strides "\x89}tRs."

TEST(tensors_that_reach_outside_their_storage_are_refused)
{
    static const struct {
        const char *pickle;
        size_t len;
        const char *words; /* NULL: it is fine */
    } rows[] = {
        {PICKLE(TENSOR("K\0", "K\4\x85", "K\1\x85")), NULL},
        {PICKLE(TENSOR("K\2", "K\2\x85", "K\1\x85")), NULL},
        {PICKLE(TENSOR("K\1", "K\0K\t\x86", "K\tK\1\x86")), NULL}, /* no elements: nothing is reached */
        {PICKLE(TENSOR("K\1", "K\4\x85", "K\1\x85")), "tensor w reaches past the end of its storage"},
        {PICKLE(TENSOR("K\0", "K\2\x85", "K\4\x85")), "tensor w reaches past the end"},
        {PICKLE(TENSOR("J\377\377\377\377", "K\1\x85", "K\1\x85")), "tensor w reaches past the end"},
        {PICKLE(TENSOR("K\0", "J\377\377\377\377\x85", "K\1\x85")), "no numbers, or negative"},
        {PICKLE(TENSOR("K\0", "K\2\x85", "J\377\377\377\377\x85")), "no numbers, or negative"},
        {PICKLE(TENSOR("K\0", "N\x85", "K\1\x85")), "no numbers, or negative"},
        {PICKLE(TENSOR("K\0", "K\2\x85", "K\1K\1\x86")), "1 dimensions and 2 strides"},
        {PICKLE(TENSOR("K\0", "(K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1t")), "7 dimensions"},
        {PICKLE(TENSOR("K\0", "K\5\x85", "K\0\x85")), "repeats elements of its storage"},
        {PICKLE(TENSOR("K\0", "\x8a\10\0\0\0\0\0\0\0\100\x85", "\x8a\10\0\0\0\0\0\0\0\100\x85")),
         "reaches past the end"},
        {PICKLE(TENSOR("K\0", "\x8a\10\0\0\0\0\0\0\0\100K\4\x86", "K\0K\0\x86")),
         "has a size that overflows"},
        {PICKLE(TENSOR("\x8a\10\377\377\377\377\377\377\377\177", "K\2\x85", "K\1\x85")),
         "reaches past the end"},
        {PICKLE(TENSOR("\x8a\11\0\0\0\0\0\0\0\0\1", "K\2\x85", "K\1\x85")), "has wrong arguments"},
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        co_err err = parse_pickle(rows[i].pickle, rows[i].len, false);
        CHECK(rows[i].words ? err && test_contains(co_errmsg(), rows[i].words) : err == CO_OK,
              "row %zu: %d %s", i, (int)err, err ? co_errmsg() : "");
    }
}

TEST(pickles_that_break_the_rules_are_refused_with_the_place)
{
    static const struct {
        const char *pickle;
        size_t len;
        const char *words;
    } rows[] = {
        {PICKLE(""), "at byte 0: it is cut short"},
        {PICKLE("\x80\2"), "at byte 2: it is cut short"},
        {PICKLE("\x80\4."), "pickle protocol 4; only 2 is read"},
        {PICKLE("\x80\2."), "it ends with values left over"},
        {PICKLE("\x80\2NN."), "it ends with values left over"},
        {PICKLE("\x80\2N.N"), "bytes follow its end"},
        {PICKLE("\x80\2\x86."), "it takes more values than there are"},
        {PICKLE("\x80\2N(\x85."), "it takes more values than there are"}, /* not below a mark */
        {PICKLE("\x80\2t."), "there is no mark"},
        {PICKLE("\x80\2(t."), "holds no state dict"}, /* an empty tuple before any value */
        {PICKLE("\x80\2Nq\1."), "a number of the memo is too large"},
        {PICKLE("\x80\2h\0."), "the memo has no such number"},
        {PICKLE("\x80\2NNa."), "values are added to something that takes none"},
        {PICKLE("\x80\2}(Nu."), "values are added to something that takes none"},
        {PICKLE("\x80\2}Nb0N)R."), "something is called that is no function"},
        {PICKLE("\x80\2ctorch\nFloatStorage\n)R."), "something is called that is no function"},
        {PICKLE("\x80\2ccollections\nOrderedDict\nN\x85R."), "collections.OrderedDict has wrong arguments"},
        {PICKLE("\x80\2ctorch._utils\n_rebuild_tensor_v2\n)R."), "_rebuild_tensor_v2 has wrong arguments"},
        {PICKLE("\x80\2NQ."), "a storage is described wrongly"},
        {PICKLE("\x80\2NNb."), "a plain value has attributes"},
        {PICKLE("\x80\2X\377\377\377\377a."), "it is cut short"},
        {PICKLE("\x80\2cos"), "a name has no end"},
        {PICKLE("\x80\2i"), "opcode 0x69 at byte 2"},
        {PICKLE("\x80\2}."), "holds no state dict"},
        {PICKLE("\x80\2]q\0h\0a."), "holds no state dict"}, /* a list that holds itself */
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        co_err err = parse_pickle(rows[i].pickle, rows[i].len, false);
        CHECK(err && test_contains(co_errmsg(), rows[i].words), "row %zu: %d %s", i, (int)err,
              err ? co_errmsg() : "accepted");
    }
}

TEST(archives_that_are_not_as_torch_writes_them_are_refused)
{
    static archive a;
    co_zip_file zip;

    a = (archive){0};
    archive_add(&a, "m/other", "x", 1);
    archive_end(&a);
    torch_file *f = NULL;
    CHECK_FAILS(torch_parse(&f, a.bytes, a.n, "z", NULL), CO_EINPUT, "it has no data.pkl");
    a = (archive){0};
    archive_add(&a, "m/data.pkl", "N.", 2);
    archive_add(&a, "m/data.pkl", "N.", 2);
    archive_end(&a);
    CHECK_FAILS(co_zip_parse(&zip, a.bytes, a.n, "z"), CO_EFORMAT, "two entries are called m/data.pkl");
    co_zip_close(&zip);
    a = (archive){0};
    archive_add(&a, "m/byteorder", "bigger", 6);
    archive_add(&a, "m/data.pkl", "N.", 2);
    archive_end(&a);
    CHECK_FAILS(torch_parse(&f, a.bytes, a.n, "z", NULL), CO_EINPUT, "big-endian");
    test_run r =
        test_sh("printf '\\200\\002\\212\\nl' > old.pth; $COHORT ckpt import old.pth; echo status $?");
    CHECK(test_contains(r.out, "a bare pickle, as PyTorch wrote before 1.6") &&
              test_contains(r.out, "status 2"),
          "%s", r.out);
    free(r.out);
}

TEST(sizes_in_zip64_fields_are_read)
{
    static archive a;
    co_zip_file zip;

    a = (archive){.wide = 1};
    archive_add(&a, "m/one", "first", 5);
    archive_add(&a, "m/two", "second!", 7);
    archive_end(&a);
    CHECK_OK(co_zip_parse(&zip, a.bytes, a.n, "z"));
    co_zip_entry *two = co_zip_find(&zip, "m/two");
    char bytes[7];
    CHECK(two && two->len == 7, "%llu", two ? (unsigned long long)two->len : 0ull);
    CHECK_OK(co_zip_check(&zip, two));
    CHECK_OK(co_zip_read(&zip, two, 0, bytes, 7));
    CHECK(memcmp(bytes, "second!", 7) == 0, "%.7s", bytes);
    co_zip_close(&zip);
    a = (archive){.wide = 2};
    archive_add(&a, "m/one", "first", 5);
    archive_end(&a);
    CHECK_FAILS(co_zip_parse(&zip, a.bytes, a.n, "z"), CO_EFORMAT, "a zip64 field is cut short");
    co_zip_close(&zip);
}

/* --- memory --------------------------------------------------------------------------------------------- */
static co_err import_once(void *ctx)
{
    (void)ctx;
    unlink("out");
    return co_weights_import(golden_path("lightning.ckpt"), "out", NULL, NULL);
}

TEST(an_import_without_memory_says_so_and_leaks_nothing)
{
    test_each_alloc_fails(import_once, NULL);
}
