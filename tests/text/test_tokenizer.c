/* Tokenisers against the tokenizers library: golden/text.json has what it makes of made-up sentences. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "harness.h"
#include "text/text.h"

static json_t *golden(const char *part)
{
    json_t *all;

    test_may_leak();
    CHECK_OK(co_json_read(&all, test_repo("tests/golden/text.json"), 4 << 20));
    return json_object_get(all, part);
}

static co_tokenizer *parsed(json_t *kind)
{
    const char *file = co_json_str(kind, "file");
    co_tokenizer *t = NULL;

    CHECK_OK(co_tokenizer_parse(&t, file, strlen(file), co_json_str(kind, "name")));
    return t;
}

static void check_line(const co_tokenizer *t, const char *kind, json_t *line, json_t *ids, const char *back)
{
    const char *text = json_string_value(line);
    co_tokens got = {0};
    co_str again = {0};

    CHECK_OK(co_tokenizer_encode(t, &got, text, strlen(text)));
    CHECK(got.n == json_array_size(ids), "%s: \"%s\": %zu tokens, wanted %zu", kind, text, got.n,
          json_array_size(ids));
    for (size_t i = 0; i < got.n; i++)
        CHECK(got.id[i] == json_integer_value(json_array_get(ids, i)),
              "%s: \"%s\": token %zu is %d, wanted %lld", kind, text, i, got.id[i],
              json_integer_value(json_array_get(ids, i)));
    co_tokenizer_decode(t, got.id, got.n, &again);
    CHECK(strcmp(co_str_text(&again), back) == 0, "%s: \"%s\" comes back as \"%s\", wanted \"%s\"", kind,
          text, co_str_text(&again), back);
    co_tokens_fini(&got);
    co_str_fini(&again);
}

TEST(tokenizers_of_the_library_give_the_same_tokens_and_the_same_text)
{
    json_t *tokens = golden("tokens"), *lines = json_object_get(tokens, "lines"), *kind, *line;
    size_t k, i;

    json_array_foreach(json_object_get(tokens, "kinds"), k, kind)
    {
        co_tokenizer *t = parsed(kind);
        json_array_foreach(lines, i, line)
            check_line(t, co_json_str(kind, "name"), line, json_array_get(json_object_get(kind, "ids"), i),
                       json_string_value(json_array_get(json_object_get(kind, "back"), i)));
        co_tokenizer_free(t);
    }
    CHECK(k == 7, "%zu kinds", k);
}

static co_tokenizer *trained(json_t *lines)
{
    co_word_counter *c;
    co_tokenizer *t = NULL;
    json_t *line;
    size_t i;

    CHECK_OK(co_word_counter_new(&c));
    json_array_foreach(lines, i, line)
        CHECK_OK(co_word_counter_add(c, json_string_value(line), json_string_length(line)));
    CHECK_OK(co_word_counter_tokenizer(c, &t, 2, 30000));
    co_word_counter_free(c);
    return t;
}

TEST(a_word_level_tokenizer_trained_here_is_the_library_s_file_byte_for_byte)
{
    json_t *tokens = golden("tokens"), *words = json_array_get(json_object_get(tokens, "kinds"), 0);
    co_tokenizer *t = trained(json_object_get(tokens, "lines"));
    size_t len;
    const char *file = co_tokenizer_file(t, &len), *want = co_json_str(words, "file");
    co_token_marks marks;

    CHECK(len == strlen(want) && memcmp(file, want, len) == 0, "it begins with %.200s", file);
    CHECK_OK(co_tokenizer_marks(t, &marks));
    CHECK(marks.begin == 2 && marks.end == 3 && marks.pad == 1, "%d %d %d", marks.begin, marks.end, marks.pad);
    CHECK(co_tokenizer_id(t, "[UNK]") == 0 && co_tokenizer_id(t, "nowhere") == -1, "ids");
    CHECK(strcmp(co_tokenizer_token(t, 2), "[SOS]") == 0 && !co_tokenizer_token(t, co_tokenizer_size(t)),
          "names");
    co_tokenizer_free(t);
}

static const struct {
    const char *file, *words;
} bad[] = {
    {"", "tokenizer"},
    {"[]", "no \"model\""},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "its model is Unigram"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", "its model is WordPiece"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{},\"unk_token\":\"u\"}}", "no vocab"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"u\"}}",
     "unk_token u is not in the vocab"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}", "no unk_token"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":-1},\"unk_token\":\"a\"}}",
     "the number of the token a"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":9000},\"unk_token\":\"a\"}}", "too sparse"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"b\":0},\"unk_token\":\"a\"}}",
     "the same number, 0"},
    {"{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\",\"x\":1}}", "has \"x\""},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "merge 0 needs the token b"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "merge 0 is neither"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}}", "dropout of 0.1"},
    {"{\"truncation\":{\"max_length\":5},\"model\":{\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}",
     "truncation is not null"},
    {"{\"normalizer\":{\"type\":\"NFKC\"},\"model\":{\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}",
     "normalizer is NFKC"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\"},\"model\":{\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}",
     "pre_tokenizer is Metaspace"},
    {"{\"decoder\":{\"type\":\"Fuse\"},\"model\":{\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}",
     "decoder is Fuse"},
    {"{\"added_tokens\":[{\"id\":1,\"content\":\"a\"}],\"model\":{\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}",
     "the vocabulary gives it 0"},
    {"{\"added_tokens\":[{\"id\":1,\"content\":\"b\",\"lstrip\":true}],\"model\":{\"vocab\":{\"a\":0},\"unk_"
     "token\":\"a\"}}",
     "has lstrip"},
};

TEST(what_is_wrong_or_unknown_in_a_tokenizer_file_is_refused_by_its_name)
{
    co_tokenizer *t = NULL;

    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK_FAILS(co_tokenizer_parse(&t, bad[i].file, strlen(bad[i].file), "x.json"), CO_EINPUT,
                    bad[i].words);
    CHECK(!t, "written although refused");
    CHECK_FAILS(co_tokenizer_read(&t, "none.json"), CO_EINPUT, "none.json");
}

/* Reading a file is left out: jansson's lexer does not survive a failed allocation. */
static co_err count_and_use(void *ctx)
{
    const char text[] = "A b a b <|endoftext|> the \xC3\xA9";
    co_word_counter *c = NULL;
    co_tokens ids = {0};
    co_str back = {0};
    co_err err = co_word_counter_new(&c);

    if (!err)
        err = co_word_counter_add(c, text, strlen(text));
    if (!err)
        err = co_tokenizer_encode(ctx, &ids, text, strlen(text));
    if (!err)
        co_tokenizer_decode(ctx, ids.id, ids.n, &back);
    err = err ? err : co_str_err(&back);
    co_str_fini(&back);
    co_tokens_fini(&ids);
    co_word_counter_free(c);
    return err;
}

TEST(a_tokenizer_without_memory_says_so_and_leaks_nothing)
{
    json_t *kinds = json_object_get(golden("tokens"), "kinds");

    for (size_t i = 0; i < json_array_size(kinds); i++)
        test_each_alloc_fails(count_and_use, parsed(json_array_get(kinds, i)));
}

TEST(text_that_is_too_long_or_no_utf_8_has_no_tokens)
{
    json_t *tokens = golden("tokens");
    co_tokenizer *t = parsed(json_array_get(json_object_get(tokens, "kinds"), 1));
    co_tokens ids = {0};
    static char text[CO_TEXT_LINE + 1];

    memset(text, 'a', sizeof text);
    CHECK_FAILS(co_tokenizer_encode(t, &ids, text, sizeof text), CO_EINPUT, "65537 bytes");
    CHECK_OK(co_tokenizer_encode(t, &ids, text, sizeof text - 1));
    CHECK_FAILS(co_tokenizer_encode(t, &ids, "a\xFF", 2), CO_EINPUT, "byte 0xff at offset 1");
    co_tokens_fini(&ids);
    co_tokenizer_free(t);
}

/* --- the library itself, on real sentences ------------------------------------------------------------ */
enum { SENTENCES = 10000 };

static const char *real_pairs(void)
{
    static char path[4096];
    const char *data = getenv("COHORT_DATA");

    snprintf(path, sizeof path, "%s/en-it/tatoeba.en-it.tsv", data ? data : test_repo("../shared/data"));
    if (!co_fs_exists(path))
        test_skip("no %s: set COHORT_DATA to a folder with en-it/ in it", path);
    return path;
}

/* The first SENTENCES sentences of one side of the Tatoeba pairs, to a file of lines. */
static void take_side(const char *tsv, int field, const char *to)
{
    test_run r = test_sh("cut -f%d '%s' | head -n %d > %s", field, tsv, (int)SENTENCES, to);

    CHECK(r.status == 0, "%s", r.out);
}

static char *slurp(const char *path)
{
    char *bytes;
    size_t len;

    CHECK_OK(co_fs_read(&bytes, &len, path, 64 << 20));
    return bytes;
}

static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');

    CHECK(end, "a line is missing");
    *end = 0;
    *at = end + 1;
    return line;
}

static void add_ids(co_str *out, const co_tokens *ids)
{
    co_str_clear(out);
    for (size_t i = 0; i < ids->n; i++)
        co_str_addf(out, i ? " %d" : "%d", ids->id[i]);
}

static void same_as_library(const char *name, const char *lines_file, FILE *out)
{
    char path[64];
    co_tokenizer *t;
    co_str said = {0};

    snprintf(path, sizeof path, "%s.json", name);
    CHECK_OK(co_tokenizer_read(&t, path));
    snprintf(path, sizeof path, "%s.ids", name);
    char *lines = slurp(lines_file), *ids = slurp(path);
    snprintf(path, sizeof path, "%s.back", name);
    char *back = slurp(path);
    for (int i = 0; i < SENTENCES; i++) {
        char *line = next_line(&lines), *want = next_line(&ids), *again = next_line(&back);
        co_tokens got = {0};
        CHECK_OK(co_tokenizer_encode(t, &got, line, strlen(line)));
        add_ids(&said, &got);
        CHECK(strcmp(co_str_text(&said), want) == 0, "%s: \"%s\": %s, wanted %s", name, line,
              co_str_text(&said), want);
        if (out)
            fprintf(out, "%s\n", co_str_text(&said));
        co_str_clear(&said);
        co_tokenizer_decode(t, got.id, got.n, &said);
        CHECK(strcmp(co_str_text(&said), again) == 0, "%s: \"%s\", wanted \"%s\"", name, co_str_text(&said),
              again);
        co_tokens_fini(&got);
    }
    co_str_fini(&said);
    co_tokenizer_free(t);
}

/* Trains on the lines here, writes ours.json, and compares it with the library's words.json. */
static void train_the_same(const char *lines_file)
{
    co_word_counter *c;
    co_tokenizer *t = NULL;
    char *lines = slurp(lines_file), *want = slurp("words.json");
    size_t len;

    CHECK_OK(co_word_counter_new(&c));
    for (int i = 0; i < SENTENCES; i++) {
        char *line = next_line(&lines);
        CHECK_OK(co_word_counter_add(c, line, strlen(line)));
    }
    CHECK_OK(co_word_counter_tokenizer(c, &t, 2, 30000));
    const char *file = co_tokenizer_file(t, &len);
    CHECK(len == strlen(want) && memcmp(file, want, len) == 0, "the files differ");
    CHECK_OK(co_fs_write_atomic("ours.json", file, len));
    co_tokenizer_free(t);
    co_word_counter_free(c);
}

TEST_LONG(the_library_and_we_give_10000_real_sentences_the_same_tokens_both_ways)
{
    static const char *const kinds[] = {"words", "bytes",  "bytes_prefix", "plain",
                                        "fused", "suffix", "fallback"};
    const char *python = getenv("COHORT_PYTHON"), *script = test_repo("tests/golden/text_oracle.py");
    const char *tsv = real_pairs();

    if (!python)
        test_skip("COHORT_PYTHON is not set to a Python with the package tokenizers");
    test_may_leak();
    for (int field = 1; field <= 2; field++) {
        take_side(tsv, field, "lines");
        test_run r = test_sh("'%s' '%s' make lines .", python, script);
        CHECK(r.status == 0, "%s", r.out);
        train_the_same("lines");
        for (size_t k = 0; k < CO_COUNT(kinds); k++) {
            FILE *out = k == 0 ? fopen("ours.ids", "w") : NULL;
            same_as_library(kinds[k], "lines", out);
            if (out)
                fclose(out);
        }
        r = test_sh("'%s' '%s' check ours.json lines ours.ids", python, script);
        CHECK(r.status == 0, "%s", r.out);
        test_note("side %d: %s", field, r.out);
    }
}
