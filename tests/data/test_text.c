/* tests/data/verse.txt is verse of Shakespeare, Blake, Shelley, Tennyson, Poe and Keats: public domain. */
#include "data/sets.h"

#include <unistd.h>

#include "base/fs.h"

enum { ROOM = 256 };

static void write_file(const char *text, size_t len)
{
    FILE *f = fopen("t.txt", "we");
    CHECK(f && fwrite(text, 1, len, f) == len && fclose(f) == 0, "write t.txt: %m");
}

/* The set of this text, given with its sizeof: NUL bytes may be part of it. */
#define OPEN(text, max_len) open_text(text, sizeof(text) - 1, max_len)
static co_dataset *open_text(const char *text, size_t len, const char *max_len)
{
    co_dataset *d = NULL;
    write_file(text, len);
    CHECK_OK(set_try(&d, "text", "path", "t.txt", "max_len", max_len, (char *)NULL));
    return d;
}

#define REFUSED(text, words) refused(text, sizeof(text) - 1, words)
static void refused(const char *text, size_t len, const char *words)
{
    co_dataset *d = NULL;
    write_file(text, len);
    CHECK_FAILS(set_try(&d, "text", "path", "t.txt", (char *)NULL), CO_EINPUT, words);
    CHECK(!d, "written on failure");
}

static uint32_t total(const co_dataset *d)
{
    return d->count[0] + d->count[1] + d->count[2];
}

/* The text of one sample, from y; checks x, ids and offsets on the way. */
static void sample(const co_dataset *d, co_split s, uint32_t id, co_str *out)
{
    int32_t x[ROOM], y[ROOM], at[4];
    int64_t ids;
    int len = d->length(d, s, id);

    CHECK(len < ROOM && len >= 1 && len <= d->io.max_len, "length %d", len);
    x[len] = y[len] = 77;
    co_dataset_fill(d, s, &id, co_slice_of(d, s, &id, 1), &(co_draw){0},
                    &(co_slice_dst){.x = x, .y = y, .ids = &ids, .offsets = at, .room = 3});
    CHECK(at[0] == 0 && at[1] == len && at[2] == len && at[3] == len, "offsets %d %d %d", at[0], at[1], at[2]);
    CHECK(ids == (int64_t)id, "ids %lld", (long long)ids);
    CHECK(x[0] == 0 && x[len] == 77 && y[len] == 77, "begins with %d, or writes past its end", x[0]);
    for (int i = 0; i < len; i++) {
        CHECK(y[i] > 0 && y[i] < d->io.classes, "y[%d] = %d of %d", i, y[i], len);
        CHECK(i == 0 || x[i] == y[i - 1], "x[%d] = %d of %d", i, x[i], len);
    }
    d->decode(d, y, len, out);
}

/* Checks that the samples, sorted, are exactly these, joined by "|". */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void has(co_dataset *d, const char *want)
{
    char *all[64];
    uint32_t n = 0;
    co_str joined = {0};

    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < d->count[s]; id++) {
            co_str one = {0};
            sample(d, (co_split)s, id, &one);
            all[n++] = co_str_take(&one);
        }
    qsort(all, n, sizeof *all, by_text);
    for (uint32_t i = 0; i < n; i++) {
        co_str_addf(&joined, "%s%s", i ? "|" : "", all[i]);
        free(all[i]);
    }
    CHECK(strcmp(co_str_text(&joined), want) == 0, "\"%s\", not \"%s\"", co_str_text(&joined), want);
    co_str_fini(&joined);
    co_dataset_close(d);
}

TEST(lines_of_text_are_samples_that_end_with_a_newline)
{
    has(OPEN("one\ntwo\nthree\n", "16"), "one\n|three\n|two\n");
}

TEST(a_text_may_lack_its_last_newline_and_have_empty_lines)
{
    has(OPEN("\n\none\n\ntwo\n\n\nthree", "16"), "one\n|three\n|two\n");
}

TEST(a_text_with_crlf_reads_as_one_with_lf)
{
    has(OPEN("one\r\ntwo\r\n\r\nth\rree\r\n", "16"), "one\n|th\rree\n|two\n");
}

TEST(a_byte_order_mark_is_no_text)
{
    has(OPEN("\xEF\xBB\xBFone\ntwo\nthree", "16"), "one\n|three\n|two\n");
}

TEST(long_lines_of_text_are_cut_into_pieces_and_only_the_last_ends_the_line)
{
    has(OPEN("abcdefghij\nxy\nz\n", "4"), "abcd|efgh|ij\n|xy\n|z\n");
    has(OPEN("abcd\nxyz\nz\n", "4"), "\n|abcd|xyz\n|z\n"); /* newline alone: it did not fit */
}

TEST(one_very_long_line_is_enough_text)
{
    enum { N = 100000 };
    static char text[N];
    co_dataset *d;
    size_t chars = 0;

    for (int i = 0; i < N; i++)
        text[i] = (char)('a' + i % 26);
    d = open_text(text, N, "64");
    CHECK(total(d) == N / 64 + 1, "%u pieces", total(d));
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < d->count[s]; id++)
            chars += (size_t)d->length(d, (co_split)s, id);
    CHECK(chars == N + 1, "%zu characters and newline", chars);
    co_dataset_close(d);
}

TEST(characters_of_one_to_four_bytes_are_one_token_each)
{
    co_dataset *d = OPEN("a\nh\xC3\xA9\n\xE2\x82\xAC\xF0\x9F\x90\x9F\n", "16");

    CHECK(d->io.classes == 7, "%lld classes", (long long)d->io.classes); /* begin \n a h é € fish */
    has(d, "a\n|h\xC3\xA9\n|\xE2\x82\xAC\xF0\x9F\x90\x9F\n");
}

TEST(tokens_are_the_code_points_of_the_file_rising)
{
    co_dataset *d = OPEN("ba\n\xC3\xA9Z\n\xE2\x82\xAC\n", "16");
    int32_t tokens[9] = {0, 1, 2, 3, 4, 5, 6, CO_IGNORE, 7};
    co_str s = {0};

    CHECK(d->io.classes == 7, "%lld classes", (long long)d->io.classes);
    d->decode(d, tokens, 9, &s);
    CHECK(strcmp(co_str_text(&s), "\nZab\xC3\xA9\xE2\x82\xAC") == 0, "\"%s\"", co_str_text(&s));
    co_str_fini(&s);
    co_dataset_close(d);
}

TEST(the_verse_comes_back_whole_out_of_its_samples)
{
    co_dataset *d = set_open("text");
    uint64_t sum = 0, want = 0;
    size_t bytes = 0, len, lines = 0, last = 0;
    char *file;
    co_str s = {0};

    for (int sp = 0; sp < CO_SPLIT_COUNT; sp++)
        for (uint32_t id = 0; id < d->count[sp]; id++)
            sample(d, (co_split)sp, id, &s);
    for (size_t i = 0; i < s.len; i++)
        sum += (uint8_t)s.p[i] * (uint64_t)(uint8_t)s.p[i];
    bytes = s.len;
    CHECK_OK(co_fs_read(&file, &len, test_repo("tests/data/verse.txt"), 1 << 20));
    for (size_t i = 0; i < len; i++) { /* but for the newlines of empty lines */
        bool empty = file[i] == '\n' && i == last;
        want += empty ? 0 : (uint8_t)file[i] * (uint64_t)(uint8_t)file[i];
        bytes += empty;
        lines += file[i] == '\n' && !empty;
        last = file[i] == '\n' ? i + 1 : last;
    }
    CHECK(bytes == len && sum == want, "%zu bytes of %zu", bytes, len);
    CHECK(d->count[CO_SPLIT_VAL] == total(d) / 10 && d->count[CO_SPLIT_TEST] == total(d) / 10, "%u of %u",
          d->count[CO_SPLIT_VAL], total(d));
    CHECK(total(d) > lines, "%u samples of %zu lines: none was cut", total(d), lines);
    CHECK(d->io.max_len == 64, "max_len %lld", (long long)d->io.max_len);
    free(file);
    co_str_fini(&s);
    co_dataset_close(d);
}

TEST(a_nul_byte_is_refused_with_its_offset)
{
    REFUSED("one\ntwo\nth\0ree\nfour\n", "t.txt is not text: a NUL byte at offset 10");
    REFUSED("\0", "a NUL byte at offset 0");
}

TEST(bytes_that_are_not_utf8_are_refused_with_their_offset)
{
    REFUSED("abc\nd\xFF\n", "t.txt is not UTF-8: byte 0xff at offset 5");
    REFUSED("\x80", "byte 0x80 at offset 0");             /* continuation without a start */
    REFUSED("a\xC3", "byte 0xc3 at offset 1");            /* cut short */
    REFUSED("a\xC3\ncde", "byte 0xc3 at offset 1");       /* cut by a newline */
    REFUSED("ab\xC0\xAF", "byte 0xc0 at offset 2");       /* overlong, 2 bytes */
    REFUSED("a\xE0\x9F\xBF", "byte 0xe0 at offset 1");    /* overlong, 3 bytes */
    REFUSED("\xF0\x8F\xBF\xBF", "byte 0xf0 at offset 0"); /* overlong, 4 bytes */
    REFUSED("\xED\xA0\x80", "byte 0xed at offset 0");     /* surrogate */
    REFUSED("\xF4\x90\x80\x80", "byte 0xf4 at offset 0"); /* past U+10FFFF */
    REFUSED("\xE2\x82", "byte 0xe2 at offset 0");
}

TEST(the_outermost_code_points_are_taken)
{
    has(OPEN("\x01\x7F\n\xC2\x80\xDF\xBF\n\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\n"
             "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\n",
             "16"),
        "\x01\x7F\n|\xC2\x80\xDF\xBF\n|\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\n|"
        "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\n");
}

TEST(a_text_that_is_empty_or_too_short_is_refused)
{
    REFUSED("", "data.path: t.txt is empty");
    REFUSED("\n\n\r\n", "t.txt has 0 lines of text; at least 3 are needed");
    REFUSED("only one line\n", "has 1 line of text");
    REFUSED("one\ntwo", "has 2 lines of text");
    REFUSED("\xEF\xBB\xBF", "has 0 lines of text");
}

TEST(a_text_file_that_cannot_be_read_is_named_with_the_reason)
{
    co_dataset *d = NULL;

    CHECK_FAILS(set_try(&d, "text", "path", "/x/y.txt", (char *)NULL), CO_EINPUT,
                "data.path: open /x/y.txt: No such file or directory");
    CHECK_FAILS(set_try(&d, "text", "path", "/", (char *)NULL), CO_EINPUT, "/ is a folder, not a file");
    CHECK_FAILS(set_try(&d, "text", (char *)NULL), CO_EINPUT,
                "data=text needs data.path=FILE (any UTF-8 text)");
}

TEST(a_text_of_more_than_a_gibibyte_is_refused_unread)
{
    co_dataset *d = NULL;

    write_file("", 0);
    CHECK(truncate("t.txt", (1LL << 30) + 1) == 0, "%m");
    CHECK_FAILS(set_try(&d, "text", "path", "t.txt", (char *)NULL), CO_EINPUT,
                "t.txt has 1073741825 bytes; text of more than 1 GiB");
}

TEST(the_fingerprint_of_a_text_is_of_its_content_and_options)
{
    co_dataset *d[4];

    d[0] = OPEN("one\ntwo\nthree\n", "16");
    d[1] = OPEN("one\ntwo\nthree\n", "32");
    d[2] = OPEN("one\ntwo\nthrey\n", "16");
    CHECK(rename("t.txt", "u.txt") == 0, "%m");
    CHECK_OK(set_try(&d[3], "text", "path", "u.txt", "max_len", "16", (char *)NULL));
    CHECK(strcmp(d[0]->fingerprint, d[1]->fingerprint) != 0, "of max_len");
    CHECK(strcmp(d[0]->fingerprint, d[2]->fingerprint) != 0, "of the content");
    CHECK(strcmp(d[2]->fingerprint, d[3]->fingerprint) == 0, "not of the name");
    for (int i = 0; i < 4; i++)
        co_dataset_close(d[i]);
}

TEST(samples_of_a_slice_of_text_lie_end_to_end)
{
    co_dataset *d = OPEN("abcdefghijklmno\nabcdefghijklmnop\nabc\nd\ne\n", "18");
    uint32_t ids[3] = {2, 0, 1};
    int32_t x[64], y[64], at[6];
    co_str all = {0}, one = {0};

    CHECK(d->io.max_len == 18 && d->count[CO_SPLIT_TRAIN] == 3, "max_len %lld", (long long)d->io.max_len);
    co_slice_shape shape = co_slice_of(d, CO_SPLIT_TRAIN, ids, 3);
    co_dataset_fill(d, CO_SPLIT_TRAIN, ids, shape, &(co_draw){0},
                    &(co_slice_dst){.x = x, .y = y, .offsets = at, .room = 5});
    CHECK(shape.n == 3 && shape.tokens == at[3] && at[5] == at[3] && shape.targets == 0, "%d tokens", at[3]);
    d->decode(d, y, at[3], &all);
    for (int i = 0; i < 3; i++) {
        CHECK(at[i + 1] - at[i] == d->length(d, CO_SPLIT_TRAIN, ids[i]), "sample %d", i);
        sample(d, CO_SPLIT_TRAIN, ids[i], &one);
    }
    CHECK(strcmp(co_str_text(&all), co_str_text(&one)) == 0, "\"%s\"", co_str_text(&all));
    co_str_fini(&all);
    co_str_fini(&one);
    co_dataset_close(d);
}

static co_err try_verse(void *path)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, "text", "path", path, (char *)NULL);
    co_dataset_close(d);
    return err;
}

TEST(text_says_so_when_memory_is_out)
{
    test_each_alloc_fails(try_verse, (void *)test_repo("tests/data/verse.txt"));
}

static void refuses_vocabulary(const co_dataset *d, const char *json, const char *words)
{
    co_dataset *v = NULL;

    CHECK_FAILS(d->def->open_vocabulary(&v, json, strlen(json)), CO_EINPUT, words);
    CHECK(!v, "written on failure");
}

TEST(the_characters_of_a_text_open_without_it_and_make_samples_of_lines)
{
    static const char *const lines[] = {"b\xC3\xA9", "", "bbbbbbbbb\xC3\xA9"};
    co_dataset *d = OPEN("ab\nb\xC3\xA9\nba\nab\n", "4"), *v = NULL, *own = NULL;
    co_str json = {0}, again = {0}, text = {0};

    d->vocabulary(d, &json);
    CHECK_OK(d->def->open_vocabulary(&v, co_str_text(&json), json.len));
    v->def = d->def;
    v->vocabulary(v, &again);
    CHECK(strcmp(co_str_text(&json), co_str_text(&again)) == 0, "%s, then %s", co_str_text(&json),
          co_str_text(&again));
    CHECK(v->io.classes == d->io.classes && v->io.max_len == 4 && v->count[CO_SPLIT_TEST] == 0, "its sizes");
    CHECK_OK(co_lines_open(&own, v, lines, 3, 1));
    for (uint32_t i = 0; i < 3; i++)
        sample(own, CO_SPLIT_TEST, i, &text);
    CHECK(strcmp(co_str_text(&text), "b\xC3\xA9\n\nbb\xC3\xA9\n") == 0, "%s", co_str_text(&text));
    co_dataset *none = NULL;
    CHECK_FAILS(co_lines_open(&none, v, (const char *const[]){"a", "c"}, 2, 1), CO_EINPUT,
                "line 2 has the character c");
    CHECK_FAILS(co_lines_open(&none, v, (const char *const[]){"\xFF"}, 1, 1), CO_EINPUT, "line 1 is not UTF-8");
    CHECK_FAILS(co_lines_open(&none, v, (const char *const[]){"a", "c"}, 2, 41), CO_EINPUT,
                "line 42 has the character c");
    refuses_vocabulary(d, "{}", "format");
    refuses_vocabulary(d, "{\"format\":\"text 1\"}", "characters or max_len");
    refuses_vocabulary(d, "{\"format\":\"text 1\",\"max_len\":4,\"characters\":\"\\nba\"}", "do not rise");
    refuses_vocabulary(d, "{\"format\":\"text 1\",\"max_len\":4,\"characters\":\"ab\"}", "no newline");
    co_dataset_close(own);
    co_dataset_close(v);
    co_dataset_close(d);
    co_str_fini(&json);
    co_str_fini(&again);
    co_str_fini(&text);
}
