/* Reading and writing .safetensors: round trip, the reference package, and a violation of every rule. */
#include "harness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "tensor/safetensors.h"

/* The same tensors and rule as in tests/golden/check_safetensors.py, widest dtype first. */
static const co_st_tensor tensors[] = {
    {.name = "steps", .dtype = CO_I64, .shape = {0, {0}}},
    {.name = "wide", .dtype = CO_F64, .shape = {2, {3, 5}}},
    {.name = "fc1.weight", .dtype = CO_F32, .shape = {2, {7, 9}}},
    {.name = "fc1.bias", .dtype = CO_F32, .shape = {1, {7}}},
    {.name = "none", .dtype = CO_F32, .shape = {3, {4, 0, 2}}},
    {.name = "idx", .dtype = CO_I32, .shape = {3, {2, 3, 4}}},
    {.name = "marks", .dtype = CO_U32, .shape = {1, {11}}},
    {.name = "bytes \xc3\xa4\"\\", .dtype = CO_U8, .shape = {6, {1, 1, 1, 1, 1, 13}}},
};
enum { N = CO_COUNT(tensors) };

static size_t values(unsigned char *dst, const co_st_tensor *t)
{
    int64_t n = co_shape_count(&t->shape);
    size_t size = co_dtype_size(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        int x = (int)(37 * i % 101) - 50;
        unsigned char *p = dst + (size_t)i * size;
        if (t->dtype == CO_F32)
            memcpy(p, &(float){(float)x / 8}, 4);
        else if (t->dtype == CO_F64)
            memcpy(p, &(double){x / 8.0}, 8);
        else if (t->dtype == CO_I64)
            memcpy(p, &(int64_t){x}, 8);
        else if (t->dtype == CO_I32)
            memcpy(p, &(int32_t){x}, 4);
        else if (t->dtype == CO_U32)
            memcpy(p, &(uint32_t){(uint32_t)abs(x)}, 4);
        else
            *p = (unsigned char)abs(x);
    }
    return (size_t)n * size;
}

/* Writes all tensors to path in pieces of `piece` bytes. */
static co_err write_them(const char *path, size_t piece, char hex[65], uint64_t *len)
{
    unsigned char buf[1024];
    co_st_writer *w = NULL;
    json_t *meta = json_pack("{s:s}", "made", "here");
    if (!meta)
        return CO_ENOMEM;
    co_err err = co_st_create(&w, path, tensors, N, meta);
    json_decref(meta);
    if (err)
        return err;
    for (int i = 0; i < N && !err; i++) {
        size_t n = values(buf, &tensors[i]);
        for (size_t k = 0; k < n && !err; k += piece)
            err = co_st_write(w, buf + k, n - k < piece ? n - k : piece);
    }
    if (!err)
        return co_st_finish(w, hex, len);
    co_st_abort(w);
    return err;
}

static co_err read_them(const char *path)
{
    unsigned char want[1024], got[1024];
    co_st_file *f = NULL;
    CO_TRY(co_st_open(&f, path));
    for (int i = 0; i < N; i++) {
        const co_st_tensor *t = co_st_find(f, tensors[i].name);
        CHECK(t && t->dtype == tensors[i].dtype && co_shape_eq(&t->shape, &tensors[i].shape), "tensor %d", i);
        size_t n = values(want, &tensors[i]);
        CHECK(t->len == n, "%s has %" PRIu64 " bytes", t->name, t->len);
        CHECK_OK(co_st_read(f, t, 0, got, n));
        CHECK(memcmp(want, got, n) == 0, "%s has other values", t->name);
        if (n > 1) {
            CHECK_OK(co_st_read(f, t, 1, got, n - 1));
            CHECK(memcmp(want + 1, got, n - 1) == 0, "%s has other values from byte 1", t->name);
        }
        CHECK_FAILS(co_st_read(f, t, 1, got, n), CO_EINPUT, "cannot read");
    }
    co_st_close(f);
    return CO_OK;
}

TEST(a_safetensors_file_comes_back_as_it_was_written)
{
    char hex[65], first[65], again[65];
    uint64_t len, n;
    size_t pieces[] = {1024, 1, 7};
    for (size_t i = 0; i < CO_COUNT(pieces); i++) {
        unlink("x.safetensors");
        CHECK_OK(write_them("x.safetensors", pieces[i], hex, &len));
        CHECK_OK(read_them("x.safetensors"));
        CHECK_OK(co_sha256_of_file("x.safetensors", again, &n));
        CHECK(n == len && strcmp(hex, again) == 0, "hash or length of what was written");
        if (i == 0)
            memcpy(first, hex, sizeof first);
        CHECK(strcmp(first, hex) == 0, "pieces of %zu give another file", pieces[i]);
    }
    co_st_file *f = NULL;
    CHECK_OK(co_st_open(&f, "x.safetensors"));
    CHECK(co_st_count(f) == N && !co_st_at(f, N) && !co_st_at(f, -1), "count");
    for (int i = 0; i < N; i++) {
        const co_st_tensor *t = co_st_at(f, i);
        CHECK(t->offset % co_dtype_size(t->dtype) == 0, "%s is not aligned", t->name);
        CHECK(i == 0 || strcmp(co_st_by_name(f, i - 1)->name, co_st_by_name(f, i)->name) < 0, "name order");
    }
    CHECK(strcmp(co_st_meta(f, "format"), "pt") == 0 && strcmp(co_st_meta(f, "made"), "here") == 0 &&
              !co_st_meta(f, "absent"),
          "metadata");
    co_st_close(f);
}

TEST(tensors_larger_than_the_writers_block_are_whole)
{
    size_t n = (3 << 20) + 5;
    unsigned char *x = co_alloc(n), *y = co_alloc(n);
    uint64_t seed = 1, len;
    char hex[65], again[65];
    co_st_tensor t = {.name = "x", .dtype = CO_U8, .shape = CO_SHAPE((int64_t)n)};
    co_st_writer *w = NULL;
    co_st_file *f = NULL;
    for (size_t i = 0; i < n; i++)
        x[i] = (unsigned char)test_u32(&seed);
    CHECK_OK(co_st_create(&w, "big", &t, 1, NULL));
    for (size_t at = 0, piece = 1; at < n; at += piece, piece = piece * 3 + 1)
        CHECK_OK(co_st_write(w, x + at, n - at < piece ? n - at : piece));
    CHECK_OK(co_st_finish(w, hex, &len));
    CHECK_OK(co_sha256_of_file("big", again, NULL));
    CHECK(strcmp(hex, again) == 0, "hash");
    CHECK_OK(co_st_open(&f, "big"));
    CHECK_OK(co_st_read(f, co_st_find(f, "x"), 0, y, n));
    CHECK(memcmp(x, y, n) == 0, "bytes differ");
    co_st_close(f);
    co_free(x);
    co_free(y);
}

TEST(a_writer_takes_no_more_and_no_less_than_was_declared)
{
    char hex[65], bytes[16] = {0};
    uint64_t len;
    co_st_tensor two[] = {{.name = "a", .dtype = CO_F32, .shape = CO_SHAPE(2)},
                          {.name = "a", .dtype = CO_F32, .shape = CO_SHAPE(2)}};
    co_st_writer *w = NULL;
    CHECK_OK(co_st_create(&w, "w", two, 1, NULL));
    CHECK_FAILS(co_st_create(&w, "w", two, 1, NULL), CO_EIO, "create w: File exists");
    CHECK_FAILS(co_st_write(w, bytes, 9), CO_EINPUT, "1 bytes too many");
    CHECK_OK(co_st_write(w, bytes, 7));
    CHECK_FAILS(co_st_finish(w, hex, &len), CO_EINPUT, "w: 1 bytes of the declared tensors were never written");
    CHECK(!co_fs_exists("w"), "a file that is not whole was left");
    CHECK_FAILS(co_st_create(&w, "w", two, 2, NULL), CO_EINPUT, "two tensors are named a");
    two[1].name = "__metadata__";
    CHECK_FAILS(co_st_create(&w, "w", two, 2, NULL), CO_EINPUT, "two tensors are named __metadata__");
    two[1] = (co_st_tensor){.name = "b", .dtype = CO_F32, .shape = CO_SHAPE(INT64_MAX)};
    CHECK_FAILS(co_st_create(&w, "w", two, 2, NULL), CO_EINPUT, "tensor b is too large");
    json_t *meta = json_pack("{s:i}", "a", 1);
    CHECK_FAILS(co_st_create(&w, "w", two, 1, meta), CO_EINPUT, "must be strings");
    json_decref(meta);
    CHECK(!co_fs_exists("w"), "a refused file was made");
    CHECK_FAILS(co_st_create(&w, "no/such/w", two, 1, NULL), CO_EIO, "no/such/w: No such file");
}

/* A file in memory with this header and `data` bytes of data. */
static co_err parse(const char *header, size_t data)
{
    char *bytes = co_zalloc(8 + strlen(header));
    co_st_file *f = NULL;
    uint64_t n = strlen(header);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    co_err err = co_st_parse(&f, bytes, 8 + n, 8 + n + data, "t");
    co_st_close(f);
    co_free(bytes);
    return err;
}

#define T(dtype, shape, span) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" span "}"

TEST(every_rule_of_safetensors_is_enforced)
{
    static const struct {
        const char *header;
        size_t data;
        const char *why;
    } bad[] = {
        {"", 0, "does not begin with '{'"},
        {" {}", 0, "does not begin with '{'"},
        {"[]", 0, "does not begin with '{'"},
        {"{", 0, "not valid JSON"},
        {"{} x", 0, "not valid JSON"},
        {"{\"a\":1}", 0, "tensor a is not described by an object"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "duplicate"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate __metadata__"},
        {"{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "duplicate __metadata__ 'a'"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",}", 4, "not valid JSON: a string was expected at byte"},
        {"{\"a\" " T("F32", "[1]", "[0,4]") "}", 4, "not valid JSON: ':' expected at byte"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") " \"b\"}", 4, "not valid JSON: '}' expected at byte"},
        {"{a:1}", 0, "not valid JSON: a string was expected at byte 1"},
        {"{\"a\":", 0, "not valid JSON"},
        {"{\"a", 0, "not valid JSON"},
        {"{\"__metadata__\":{\"a\\x\":\"\"}}", 0, "not valid JSON"},
        {"{\"a\\u0000b\":" T("F32", "[1]", "[0,4]") "}", 4, "JSON"},
        {"{\"a\xff\":" T("F32", "[1]", "[0,4]") "}", 4, "JSON"},
        {"{\"a\":" T("F31", "[1]", "[0,4]") "}", 4, "dtype 'F31'"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype ''"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "tensor a has no shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "data_offsets are not"},
        {"{\"a\":" T("F32", "[1.0]", "[0,4]") "}", 4, "dimension 0 is not a whole number"},
        {"{\"a\":" T("F32", "[2,-1]", "[0,4]") "}", 4, "dimension 1 is not a whole number"},
        {"{\"a\":" T("F32", "[\"1\"]", "[0,4]") "}", 4, "dimension 0"},
        {"{\"a\":" T("F32", "[1,1,1,1,1,1,1]", "[0,4]") "}", 4, "7 dimensions"},
        {"{\"a\":" T("F32", "[1]", "[0]") "}", 4, "data_offsets are not"},
        {"{\"a\":" T("F32", "[1]", "[0,4,8]") "}", 4, "data_offsets are not"},
        {"{\"a\":" T("F32", "[1]", "[4,0]") "}", 4, "data_offsets are not"},
        {"{\"a\":" T("F32", "[1]", "[-4,0]") "}", 4, "data_offsets are not"},
        {"{\"a\":" T("F32", "[1]", "[0,8]") "}", 8, "is 4 bytes, data_offsets span 8"},
        {"{\"a\":" T("F32", "[2]", "[0,4]") "}", 4, "is 8 bytes, data_offsets span 4"},
        {"{\"a\":" T("F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "overflows"},
        {"{\"a\":" T("F32", "[4611686018427387904]", "[0,0]") "}", 0, "overflows"},
        {"{\"a\":" T("U8", "[9223372036854775807,3]", "[0,0]") "}", 0, "overflows"},
        {"{\"a\":" T("F32", "[99999999999999999999]", "[0,0]") "}", 0, "JSON"},
        {"{\"a\":" T("F4", "[3]", "[0,1]") "}", 1, "not a whole number of bytes"},
        {"{\"a\":" T("F32", "[1]", "[4,8]") "}", 8, "a hole"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[8,12]") "}", 12, "a hole"},
        {"{\"a\":" T("F32", "[2]", "[0,8]") ",\"b\":" T("F32", "[1]", "[4,8]") "}", 8, "they overlap"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") ",\"b\":" T("F32", "[1]", "[0,4]") "}", 4, "they overlap"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 5, "extra bytes at the end"},
        {"{\"a\":" T("F32", "[1]", "[0,4]") "}", 3, "cut short"},
        {"{}", 1, "extra bytes"},
        {"{\"a\":" T("U8", "[9223372036854775807]", "[0,9223372036854775807]") "}", 3, "overflows"},
        {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ 'a' is not a string"},
    };
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        co_err err = parse(bad[i].header, bad[i].data);
        CHECK(err == CO_EFORMAT && test_contains(co_errmsg(), bad[i].why) && strncmp(co_errmsg(), "t: ", 3) == 0,
              "%s: error %d, \"%s\", wanted \"%s\"", bad[i].header, (int)err, co_errmsg(), bad[i].why);
    }
}

TEST(odd_but_legal_headers_are_read)
{
    CHECK_OK(parse("{}", 0));
    CHECK_OK(parse("{}      ", 0));
    CHECK_OK(parse("{\"__metadata__\":{}}", 0));
    CHECK_OK(parse("{\"\":" T("F32", "[]", "[0,4]") "}", 4));
    CHECK_OK(parse("{\"b\":" T("BF16", "[2]", "[4,8]") ",\"a\":" T("F32", "[1]", "[0,4]") "}", 8));
    CHECK_OK(parse("{\"a\":" T("F4", "[2,3]", "[0,3]") ",\"b\":" T("F6_E2M3", "[4]", "[3,6]") "}", 6));
    CHECK_OK(parse("{\"a\":" T("F32", "[0]", "[4,4]") ",\"b\":" T("U8", "[4]", "[0,4]") ",\"c\":" T(
                       "U8", "[1]", "[4,5]") "}",
                   5));
    CHECK_OK(parse("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":[]}}", 1));
}

TEST(a_length_word_beyond_the_file_or_the_limit_is_refused)
{
    char bytes[16] = {0};
    co_st_file *f = NULL;
    for (size_t len = 0; len < 8; len++)
        CHECK_FAILS(co_st_parse(&f, bytes, len, len, "t"), CO_EFORMAT, "shorter than any");
    CHECK_FAILS(co_st_parse(&f, bytes, 8, 8, "t"), CO_EFORMAT, "does not begin");
    memcpy(bytes, &(uint64_t){9}, 8);
    CHECK_FAILS(co_st_parse(&f, bytes, 16, 16, "t"), CO_EFORMAT, "header of 9 bytes in a file of 16");
    CHECK_FAILS(co_st_parse(&f, bytes, 16, 17, "t"), CO_EFORMAT, "cut short");
    memcpy(bytes, &(uint64_t){100000001}, 8);
    CHECK_FAILS(co_st_parse(&f, bytes, 16, 1u << 30, "t"), CO_EFORMAT, "more than the 100,000,000");
    memset(bytes, 0xff, 8);
    CHECK_FAILS(co_st_parse(&f, bytes, 16, UINT64_MAX, "t"), CO_EFORMAT, "more than the 100,000,000");
}

TEST(a_file_cut_anywhere_is_refused)
{
    char hex[65];
    uint64_t len;
    co_st_file *f = NULL;
    CHECK_OK(write_them("x", 1024, hex, &len));
    for (uint64_t n = len; n-- > 0;) {
        CHECK(truncate("x", (off_t)n) == 0, "%m");
        co_err err = co_st_open(&f, "x");
        CHECK(err == CO_EFORMAT && test_contains(co_errmsg(), "x: "), "cut to %" PRIu64 ": %d %s", n,
              (int)err, co_errmsg());
    }
    CHECK_FAILS(co_st_open(&f, "."), CO_EIO, ". is not a regular file");
    CHECK_FAILS(co_st_open(&f, "absent"), CO_EIO, "open absent: No such file");
    CHECK(mkfifo("pipe", 0600) == 0, "%m");
    CHECK_FAILS(co_st_open(&f, "pipe"), CO_EIO, "pipe is not a regular file");
}

TEST(what_cannot_be_computed_with_is_listed_but_not_read)
{
    char data[128] = {0}, x[4];
    const char *header = "{\"a\":" T("BF16", "[2]", "[0,4]") "}";
    uint64_t n = strlen(header);
    memcpy(data, &n, 8);
    CHECK(8 + n + 4 <= sizeof data, "room");
    memcpy(data + 8, header, n);
    CHECK_OK(co_fs_write_atomic("bf16", data, 8 + n + 4));
    co_st_file *f = NULL;
    CHECK_OK(co_st_open(&f, "bf16"));
    const co_st_tensor *t = co_st_find(f, "a");
    CHECK(t && t->dtype == CO_DTYPE_COUNT && strcmp(t->dtype_name, "BF16") == 0 && t->len == 4, "listed");
    CHECK_FAILS(co_st_read(f, t, 0, x, 4), CO_EINPUT, "tensor a is BF16");
    co_st_close(f);
}

/* Headers of LARGE bytes that would take too much memory as one JSON value. */
enum { LARGE = 10000000 };

static size_t put(char *dst, const char *fmt, int i)
{
    return (size_t)sprintf(dst, fmt, i, i, i + 1);
}

static size_t repeat(char *dst, const char *front, const char *fmt, const char *back, int *n)
{
    size_t len = (size_t)sprintf(dst, "%s", front);
    for (*n = 0; len < LARGE; ++*n) {
        if (*n)
            dst[len++] = ',';
        len += put(dst + len, fmt, *n);
    }
    return len + (size_t)sprintf(dst + len, "%s", back);
}

TEST(a_large_header_takes_memory_in_proportion_to_its_length)
{
    static const struct {
        const char *front, *each, *back;
        int data_each;
        const char *why; /* NULL: legal */
    } kinds[] = {
        {"{", "\"l%07d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", "}", 1, NULL},
        {"{\"__metadata__\":{", "\"%x\":\"\"", "}}", 0, NULL},
        {"{\"__metadata__\":{\"a\":[", "0", "]}}", 0, "__metadata__ 'a' is not a string"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":[", "0", "]}}", 0,
         "tensor a: its entry is not valid JSON, or is longer than 65536 bytes"},
        {"{\"a\":[", "[]", "]}", 0, "tensor a: its entry is not valid JSON, or is longer"},
    };
    char *bytes = co_alloc(LARGE + 1000);
    memset(bytes, 0, LARGE + 1000);
    for (size_t i = 0; i < CO_COUNT(kinds); i++) {
        struct rusage before, after;
        co_st_file *f = NULL;
        int n;
        uint64_t len = repeat(bytes + 8, kinds[i].front, kinds[i].each, kinds[i].back, &n);
        memcpy(bytes, &len, 8);
        getrusage(RUSAGE_SELF, &before);
        co_err err = co_st_parse(&f, bytes, 8 + len, 8 + len + (uint64_t)(n * kinds[i].data_each), "t");
        getrusage(RUSAGE_SELF, &after);
        CHECK(kinds[i].why ? err == CO_EFORMAT && test_contains(co_errmsg(), kinds[i].why) : !err,
              "kind %zu: %s", i, co_errmsg());
        CHECK(err || kinds[i].data_each == 0 || co_st_count(f) == n, "kind %zu: not all tensors", i);
        double times = (double)(after.ru_maxrss - before.ru_maxrss) * 1024 / (double)len;
        test_note("kind %zu: %d members, %.1f times the header's length", i, n, times);
#ifndef __SANITIZE_ADDRESS__
        CHECK(times < 8, "kind %zu: %.1f times the header's length", i, times);
#endif
        co_st_close(f);
    }
    co_free(bytes);
}

static co_err write_and_read(void *ctx)
{
    char hex[65];
    uint64_t len;
    unlink("y");
    co_err err = write_them("y", 64, hex, &len);
    if (err) {
        CHECK(!co_fs_exists("y"), "a failed write left its file");
        return err;
    }
    return read_them("y");
}

TEST(safetensors_survive_each_failing_allocation)
{
    test_each_alloc_fails(write_and_read, NULL);
}

TEST(the_reference_package_reads_ours_and_we_read_its)
{
    const char *python = getenv("COHORT_PYTHON"), *script = test_repo("tests/golden/check_safetensors.py");
    char hex[65];
    uint64_t len;
    if (!python)
        test_skip("COHORT_PYTHON is not set: a Python with the packages safetensors and numpy");
    CHECK_OK(write_them("ours.safetensors", 1024, hex, &len));
    test_run r = test_sh("'%s' '%s' check ours.safetensors", python, script);
    CHECK(r.status == 0 && test_contains(r.out, "same 8"), "status %d:\n%s", r.status, r.out);
    free(r.out);
    r = test_sh("'%s' '%s' write theirs.safetensors", python, script);
    CHECK(r.status == 0, "status %d:\n%s", r.status, r.out);
    free(r.out);
    CHECK_OK(read_them("theirs.safetensors"));
    co_st_file *f = NULL;
    CHECK_OK(co_st_open(&f, "theirs.safetensors"));
    const co_st_tensor *half = co_st_find(f, "half");
    CHECK(co_st_count(f) == N + 1 && half && half->dtype == CO_DTYPE_COUNT, "half is listed");
    CHECK(strcmp(co_st_meta(f, "made"), "there") == 0, "metadata");
    co_st_close(f);
}
