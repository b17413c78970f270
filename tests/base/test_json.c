#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    CHECK_OK(co_json_parse(&v, text, strlen(text), "test"));
    return v;
}

TEST(json_comes_back_as_it_went_in_keys_in_order)
{
    static const char *const texts[] = {"{\"z\":1,\"a\":[true,false,null],\"m\":{\"x\":\"\\u00e9\\n\"}}",
                                        "[]",
                                        "{}",
                                        "-7",
                                        "\"s\"",
                                        "[9223372036854775807,-9223372036854775808]"};
    for (size_t i = 0; i < CO_COUNT(texts); i++) {
        json_t *v = parse(texts[i]);
        char *out = co_json_text(v);
        json_t *again = parse(out);
        CHECK(json_equal(v, again), "%s became %s", texts[i], out);
        CHECK(i == 0 || strcmp(out, texts[i]) == 0, "%s became %s", texts[i], out);
        CHECK(i != 0 || strncmp(out, "{\"z\":1,\"a\":[", 12) == 0, "order lost: %s", out);
        co_free(out);
        json_decref(v);
        json_decref(again);
    }
}

TEST(every_double_survives_json)
{
    uint64_t seed = 4;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_u32(&seed);
        bits = bits << 32 | test_u32(&seed);
        double x, y = 0;
        memcpy(&x, &bits, sizeof x);
        json_t *obj = json_pack("{s:o}", "x", co_json_num(x));
        char *text = co_json_text(obj);
        json_t *again = parse(text);
        CHECK(co_json_f64(again, "x", &y), "%s", text);
        CHECK(memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y)), "%a: %s", x, text);
        co_free(text);
        json_decref(obj);
        json_decref(again);
    }
}

TEST(numbers_that_json_lacks_are_words)
{
    static const double x[] = {NAN, INFINITY, -INFINITY};
    static const char *const want[] = {"\"nan\"", "\"inf\"", "\"-inf\""};
    for (int i = 0; i < 3; i++) {
        json_t *v = co_json_num(x[i]);
        char *text = co_json_text(v);
        CHECK(strcmp(text, want[i]) == 0, "%s", text);
        co_free(text);
        json_decref(v);
    }
}

TEST(bad_json_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        size_t len;
        const char *words;
    } bad[] = {
        {"", 0, "test: not valid JSON at line 1"},
        {"{\"a\":1,\n \"a\":2}", 16, "line 2, column 4: duplicate object key"},
        {"[1] x", 5, "end of file expected near 'x'"},
        {"[1]\0", 4, "test: not valid JSON"},
        {"[\"a\\u0000b\"]", 12, "\\u0000 is not allowed"},
        {"[\"a\0b\"]", 7, "test: not valid JSON"},
        {"{\"a\\u0000\":1}", 13, "test: not valid JSON"},
        {"[\"\xff\"]", 5, "test: not valid JSON"},
        {"[1,]", 4, "line 1, column 4"},
        {"{a:1}", 5, "line 1"},
        {"[nan]", 5, "invalid token near 'nan'"},
        {"[1e999]", 7, "overflow"},
        {"[9223372036854775808]", 21, "too big integer"},
        {"[01]", 4, "test: not valid JSON"},
        {"[\x1b[31m]", 7, "near '?'"},
    };
    json_t *v = NULL;
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        CHECK_FAILS(co_json_parse(&v, bad[i].text, bad[i].len, "test"), CO_EFORMAT, bad[i].words);
        CHECK(!v, "written on failure");
    }
}

TEST(nesting_and_size_have_limits)
{
    enum { DEEP = 200000 };
    static char text[DEEP];
    json_t *v = NULL;
    memset(text, '[', DEEP);
    CHECK_FAILS(co_json_parse(&v, text, DEEP, "test"), CO_EFORMAT, "maximum parsing depth reached");
    CHECK_FAILS(co_json_parse(&v, text, 100000001, "test"), CO_EFORMAT, "more than the 100000000 allowed");
    memset(text + 1000, ']', 1000);
    CHECK_OK(co_json_parse(&v, text, 2000, "test"));
    json_decref(v);
}

TEST(members_are_read_only_as_what_they_are)
{
    json_t *v = parse("{\"i\":3,\"f\":2.5,\"s\":\"x\",\"n\":null,\"inf\":\"-inf\"}");
    long long i = 77;
    double f = 77;
    CHECK(co_json_i64(v, "i", &i) && i == 3, "%lld", i);
    i = 77;
    CHECK(!co_json_i64(v, "f", &i) && !co_json_i64(v, "s", &i) && !co_json_i64(v, "absent", &i) && i == 77,
          "%lld", i);
    CHECK(co_json_f64(v, "f", &f) && f == 2.5 && co_json_f64(v, "i", &f) && f == 3, "%g", f);
    CHECK(co_json_f64(v, "inf", &f) && f == -INFINITY, "%g", f);
    f = 77;
    CHECK(!co_json_f64(v, "s", &f) && !co_json_f64(v, "n", &f) && !co_json_f64(NULL, "f", &f) && f == 77,
          "%g", f);
    CHECK(strcmp(co_json_str(v, "s"), "x") == 0 && !co_json_str(v, "i") && !co_json_str(v, "absent"),
          "strings");
    json_decref(v);
}

TEST(a_json_file_is_indented_and_reads_back)
{
    json_t *v = parse("{\"b\":[1,0.1],\"a\":{}}"), *again = NULL;
    CHECK_OK(co_json_write(v, "f.json"));
    CHECK_OK(co_json_read(&again, "f.json", 1000));
    CHECK(json_equal(v, again), "changed");
    char *text;
    size_t len;
    CHECK_OK(co_fs_read(&text, &len, "f.json", 1000));
    CHECK(text[len - 1] == '\n' && test_contains(text, "\n  \"b\": ["), "%s", text);
    co_free(text);
    json_decref(v);
    json_decref(again);
    CHECK_FAILS(co_json_read(&again, "absent.json", 1000), CO_EIO, "absent.json");
    CHECK_FAILS(co_json_read(&again, "f.json", 3), CO_EFORMAT, "f.json is longer");
    CHECK_OK(co_fs_write_atomic("bad.json", "{", 1));
    CHECK_FAILS(co_json_read(&again, "bad.json", 3), CO_EFORMAT,
                "bad.json: not valid JSON at line 1, column 1");
}

static co_err through_a_file(void *ctx)
{
    static const char text[] =
        "{\"a\":[1,2.5,\"three\",{\"b\":null}],\"c\":{\"d\":true},\"e\\n\":\"\\u00e9\"}";
    json_t *v, *again;
    CO_TRY(co_json_parse(&v, text, strlen(text), "test"));
    co_err err = co_json_write(v, "f.json");
    char *line = err ? NULL : co_json_text(v);
    if (!err && !line)
        err = CO_ENOMEM;
    co_free(line);
    json_decref(v);
    if (err)
        return err;
    CO_TRY(co_json_read(&again, "f.json", 1000));
    json_decref(again);
    json_t *num = co_json_num(1.5), *word = co_json_num(NAN);
    err = num && word ? CO_OK : CO_ENOMEM;
    json_decref(num);
    json_decref(word);
    return err;
}

TEST(every_allocation_of_json_may_fail)
{
    test_each_alloc_fails(through_a_file, NULL);
}

TEST(json_without_memory_is_not_called_malformed)
{
    static const char text[] = "{\"a\":[1,2.5,\"three\"]}";
    json_t *v;
    for (int n = 1; n < 6; n++) {
        co_alloc_fail_at(n);
        co_err err = co_json_parse(&v, text, strlen(text), "test");
        co_alloc_fail_at(0);
        CHECK(err == CO_ENOMEM, "allocation %d: error %d, %s", n, (int)err, co_errmsg());
    }
}
