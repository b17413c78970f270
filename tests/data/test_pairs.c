/* Pairs of sentences: their files, their splits, their tokens, and what is refused. */
#include "data/sets.h"

#include "base/fs.h"
#include "base/str.h"
#include "data/pairs_int.h"

static const char tsv[] = "Hello.\tCiao.\nHello.\tSalve.\nThe cat sleeps.\tIl gatto dorme.\n"
                          "The dog sleeps.\tIl cane dorme.\r\n\n  The cat is here. \tIl gatto \xC3\xA8 qui.\n"
                          "The dog is here.\tIl cane \xC3\xA8 qui.\nGood dog!\tBravo cane!\n";
static const char jsonl[] = "{\"id\":\"0\",\"translation\":{\"en\":\"Hello.\",\"it\":\"Ciao.\"}}\n{\"it\":"
                            "\"Salve.\",\"en\":\"Hello.\"}\n"
                            "{\"en\":\"The cat sleeps.\",\"it\":\"Il gatto dorme.\"}\n{\"en\":\"The dog "
                            "sleeps.\",\"it\":\"Il cane dorme.\"}\n"
                            "{\"en\":\"The cat is here.\",\"it\":\"Il gatto \\u00e8 qui.\"}\n"
                            "{\"en\":\"The dog\\nis here.\",\"it\":\"Il cane \xC3\xA8 "
                            "qui.\"}\n{\"en\":\"Good dog!\",\"it\":\"Bravo cane!\"}\n";

static void put(const char *path, const char *text)
{
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

static co_dataset *open_file(const char *path)
{
    co_dataset *d = NULL;

    CHECK_OK(set_try(&d, "pairs", "dir", path, "min_frequency", "1", "val_fraction", "0.2", (char *)NULL));
    return d;
}

static void say(const co_dataset *d, co_split s, uint32_t id, co_str *out)
{
    d->text(d, s, id, CO_SIDE_SOURCE, out);
    co_str_add(out, " = ");
    d->text(d, s, id, CO_SIDE_TARGET, out);
    co_str_add(out, "\n");
}

TEST(every_layout_of_pairs_gives_the_same_sentences_and_the_same_split)
{
    co_dataset *first, *other;

    put("a.tsv", tsv);
    put("b.jsonl", jsonl);
    CHECK(test_sh(
              "mkdir -p opus_books/en-it; cut -f1 a.tsv | grep . > opus_books/en-it/Books.en-it.en;"
              "cut -f2 a.tsv | grep . > opus_books/en-it/Books.en-it.it; gzip -k a.tsv; xz -k a.tsv;"
              "printf 'it\\tnotes\\ten\\n' > h.tsv; awk -F'\\t' 'NF{print $2 \"\\tx\\t\" $1}' a.tsv >> h.tsv;"
              "awk -F'\\t' 'NF{print 1 \"\\t\" $1 \"\\t\" 2 \"\\t\" $2}' a.tsv > ids.tsv")
                  .status == 0,
          "no files");
    first = open_file("a.tsv");
    CHECK(first->count[0] + first->count[1] == 7, "%u %u", first->count[0], first->count[1]);
    for (const char *const *path =
             (const char *const[]){"b.jsonl", "opus_books", "a.tsv.gz", "a.tsv.xz", "h.tsv", NULL};
         *path; path++) {
        other = open_file(*path);
        CHECK(strcmp(first->fingerprint, other->fingerprint) == 0, "%s", *path);
        co_str one = {0}, two = {0};
        for (int s = 0; s < 2; s++)
            for (uint32_t i = 0; i < first->count[s]; i++) {
                CHECK(first->count[s] == other->count[s], "%s: %u", *path, other->count[s]);
                say(first, (co_split)s, i, &one);
                say(other, (co_split)s, i, &two);
            }
        CHECK(strcmp(co_str_text(&one), co_str_text(&two)) == 0, "%s: %s", *path, co_str_text(&two));
        co_str_fini(&one);
        co_str_fini(&two);
        co_dataset_close(other);
    }
    CHECK_OK(set_try(&other, "pairs", "dir", "ids.tsv", "min_frequency", "1", "val_fraction", "0.2",
                     "column_src", "2", "column_tgt", "4", (char *)NULL));
    CHECK(strcmp(first->fingerprint, other->fingerprint) == 0, "columns 2 and 4");
    co_dataset_close(other);
    co_dataset_close(first);
}

/* Opens `path` with these languages and returns the first pair as "source = target", or why it is refused, then
 * the note. */
static char *as_languages(const char *path, const char *src, const char *tgt)
{
    co_dataset *d = NULL;
    co_str out = {0};

    co_err err = set_try(&d, "pairs", "dir", path, "min_frequency", "1", "val_fraction", "0", "lang_src", src,
                         "lang_tgt", tgt, (char *)NULL);
    if (err) {
        CHECK(err == CO_EINPUT, "error %d", err);
        co_str_add(&out, co_errmsg());
    } else {
        say(d, CO_SPLIT_TRAIN, 0, &out);
        co_str_add(&out, d->note);
        co_dataset_close(d);
    }
    return out.p;
}

static const struct {
    const char *path, *src, *tgt, *says[2];
} by_name[] = {
    {"t.en-it.tsv", "en", "it", {"Hello. = Ciao.", "each in one split"}},
    {"t.en-it.tsv", "it", "en", {"Ciao. = Hello.", "\nit is column 2, en is column 1: the columns are swapped"}},
    {"en-it.txt", "it", "en", {"Ciao. = Hello.", "swapped"}},
    {"opus_en_it_v1.tsv.gz", "it", "en", {"Ciao. = Hello.", "swapped"}},
    {"eng-ita.tsv", "ita", "eng", {"Ciao. = Hello.", "swapped"}},
    {"en-zh_cn.tsv", "zh_cn", "en", {"Ciao. = Hello.", "swapped"}},
    {"pt_br-ro.tsv", "ro", "pt_br", {"Ciao. = Hello.", "swapped"}},
    {"zh_cn-zh_tw.tsv", "zh_tw", "zh_cn", {"Ciao. = Hello.", "swapped"}},
    {"en-zh.tsv", "zh_cn", "zh_tw", {"it holds en and zh", "data.lang_tgt=zh_tw"}},
    {"en-it/plain.tsv", "it", "en", {"Ciao. = Hello.", "swapped"}},
    {"plain.tsv", "it", "en", {"Hello. = Ciao.", "\nit is column 1, en is column 2 (data.column_src"}},
    {"my-set.tsv", "it", "en", {"Hello. = Ciao.", "it is column 1"}},
    {"head.en-it.tsv", "it", "en", {"Hello. = Ciao.", "each in one split"}},
    {"t.en-it.tsv",
     "de",
     "en",
     {"t.en-it.tsv", "data.lang_src=de, but the file's name says that it holds en and it"}},
    {"t.en-it.tsv", "en", "fr", {"data.lang_tgt=fr", "data.column_src=1 data.column_tgt=2"}},
    {"b.en-it.jsonl", "it", "en", {"Ciao. = Hello.", "each in one split"}},
    {"opus_books", "it", "en", {"Ciao. = Hello.", "each in one split"}},
};

TEST(the_columns_of_pairs_follow_the_languages_in_the_file_s_name)
{
    put("t.en-it.tsv", tsv);
    put("b.en-it.jsonl", jsonl);
    CHECK(test_sh("cp t.en-it.tsv en-it.txt; gzip -c en-it.txt > opus_en_it_v1.tsv.gz; mkdir en-it;"
                  "for n in eng-ita en-zh_cn pt_br-ro zh_cn-zh_tw en-zh en-it/plain plain my-set; do cp "
                  "t.en-it.tsv $n.tsv; done;"
                  "(printf 'it\\ten\\n'; cat t.en-it.tsv) > head.en-it.tsv; mkdir -p opus_books/it-en;"
                  "cut -f1 t.en-it.tsv | grep . > opus_books/it-en/B.en-it.en;"
                  "cut -f2 t.en-it.tsv | grep . > opus_books/it-en/B.en-it.it")
                  .status == 0,
          "no files");
    for (size_t i = 0; i < CO_COUNT(by_name); i++) {
        char *text = as_languages(by_name[i].path, by_name[i].src, by_name[i].tgt);
        for (int k = 0; k < 2; k++)
            CHECK(test_contains(text, by_name[i].says[k]), "%s, %s to %s: %s", by_name[i].path,
                  by_name[i].src, by_name[i].tgt, text);
        co_free(text);
    }
}

/* Which split each source sentence is in, of 300 pairs of 100 sentences. */
TEST(a_source_sentence_is_in_one_split_whatever_the_order_of_the_lines)
{
    co_dataset *d[3];
    co_str lines = {0}, back = {0};
    uint32_t held = 0;

    for (int i = 0; i < 300; i++)
        co_str_addf(&lines, "sentence %d\tfrase %d\n", i % 100, i);
    for (int i = 299; i >= 0; i--)
        co_str_addf(&back, "sentence %d\tfrase %d\n", i % 100, i);
    put("a.tsv", co_str_text(&lines));
    put("b.tsv", co_str_text(&back));
    CHECK_OK(set_try(&d[0], "pairs", "dir", "a.tsv", "test_fraction", "0.05", (char *)NULL));
    CHECK_OK(set_try(&d[1], "pairs", "dir", "b.tsv", "test_fraction", "0.05", (char *)NULL));
    CHECK_OK(set_try(&d[2], "pairs", "dir", "a.tsv", "test_fraction", "0.05", "split_seed", "1", (char *)NULL));
    bool val[3][100] = {0};
    for (int k = 0; k < 3; k++) {
        CHECK(d[k]->count[0] == 255 && d[k]->count[1] == 30 && d[k]->count[2] == 15, "%u %u %u",
              d[k]->count[0], d[k]->count[1], d[k]->count[2]);
        for (uint32_t i = 0; i < d[k]->count[1]; i++) {
            co_str text = {0};
            d[k]->text(d[k], CO_SPLIT_VAL, i, CO_SIDE_SOURCE, &text);
            val[k][atoi(co_str_text(&text) + 9)] = true;
            co_str_fini(&text);
        }
    }
    CHECK(memcmp(val[0], val[1], 100) == 0, "the order of the lines moved the split");
    CHECK(memcmp(val[0], val[2], 100) != 0, "the seed did not");
    for (int i = 0; i < 100; i++)
        held += val[0][i];
    CHECK(held == 10, "%u sentences held out", held);
    CHECK(strcmp(d[0]->fingerprint, d[2]->fingerprint) != 0, "two splits have one fingerprint");
    for (int k = 0; k < 3; k++)
        co_dataset_close(d[k]);
    co_str_fini(&lines);
    co_str_fini(&back);
}

/* All samples of a split at once. */
static void fill_all(const co_dataset *d, co_split s, int32_t *x, int32_t *given, int32_t *y, int32_t *at,
                     int32_t *y_at)
{
    uint32_t ids[16];
    int64_t said[16];
    int n = (int)d->count[s];

    at[0] = y_at[0] = 0;
    for (int i = 0; i < n; i++) {
        ids[i] = (uint32_t)i;
        at[i + 1] = at[i] + d->length(d, s, ids[i]);
        y_at[i + 1] = y_at[i] + d->target_length(d, s, ids[i]);
    }
    co_slice_dst dst = {.x = x, .y = y, .given = given, .ids = said, .offsets = at, .y_offsets = y_at};
    CHECK(d->fill(d, s, ids, (co_slice_shape){.n = n}, &(co_draw){0}, &dst) == 0, "bad samples");
    CHECK(n == 0 || said[n - 1] == n - 1, "ids");
}

TEST(tokens_of_a_pair_lie_end_to_end_between_begin_and_end_and_come_back_as_text)
{
    int32_t x[256], given[256], y[256], at[17], y_at[17], again[64];

    put("a.tsv", tsv);
    co_dataset *d = open_file("a.tsv");
    fill_all(d, CO_SPLIT_TRAIN, x, given, y, at, y_at);
    for (uint32_t i = 0; i < d->count[0]; i++) {
        co_str text = {0}, back = {0};
        int n = at[i + 1] - at[i], m = y_at[i + 1] - y_at[i];
        d->text(d, CO_SPLIT_TRAIN, i, CO_SIDE_SOURCE, &text);
        CHECK(d->encode(d, co_str_text(&text), text.len, again, 64) == n, "%s: not %d tokens",
              co_str_text(&text), n);
        CHECK(memcmp(again, x + at[i], (size_t)n * sizeof *x) == 0, "%s: other tokens", co_str_text(&text));
        CHECK(x[at[i]] == 2 && x[at[i + 1] - 1] == 3, "begin %d, end %d", x[at[i]], x[at[i + 1] - 1]);
        CHECK(given[y_at[i]] == d->io.begin && y[y_at[i + 1] - 1] == d->io.end, "marks of the target");
        CHECK(memcmp(given + y_at[i] + 1, y + y_at[i], (size_t)(m - 1) * sizeof *y) == 0,
              "given is y one place later");
        d->decode(d, given + y_at[i], m, &back);
        co_str_clear(&text);
        d->text(d, CO_SPLIT_TRAIN, i, CO_SIDE_TARGET, &text);
        /* "Ciao." is the words "Ciao" and "." */
        CHECK(back.len > text.len && strncmp(co_str_text(&back), co_str_text(&text), 2) == 0, "%s",
              co_str_text(&back));
        co_str_fini(&text);
        co_str_fini(&back);
    }
    CHECK(d->io.sources > 4 && d->io.classes > 4 && d->io.max_len == 7, "%lld %lld %lld",
          (long long)d->io.sources, (long long)d->io.classes, (long long)d->io.max_len);
    CHECK(d->encode(d, "The cat the dog", 15, again, 3) == 6, "a sentence without room");
    CHECK(d->encode(d, "\xFF", 1, again, 3) == -1, "no UTF-8");
    co_dataset_close(d);
}

TEST(a_vocabulary_opens_without_the_pairs_and_translates_the_same)
{
    int32_t one[32], two[32];
    co_dataset *d, *v = NULL;
    co_str json = {0}, again = {0}, name = {0};
    const char *bytes;
    size_t len;

    put("a.tsv", tsv);
    d = open_file("a.tsv");
    d->vocabulary(d, &json);
    CHECK_OK(d->def->open_vocabulary(&v, co_str_text(&json), json.len));
    CHECK(v->count[0] == 0 && v->io.task == CO_TASK_PAIRS && v->io.sources == d->io.sources &&
              v->io.classes == d->io.classes && v->io.begin == d->io.begin && v->io.end == d->io.end,
          "another io");
    int n = d->encode(d, "The dog is new", 14, one, 32), m = v->encode(v, "The dog is new", 14, two, 32);
    CHECK(n == m && memcmp(one, two, (size_t)n * sizeof *one) == 0, "%d and %d tokens", n, m);
    v->vocabulary(v, &again);
    CHECK(strcmp(co_str_text(&json), co_str_text(&again)) == 0, "it is written differently");
    CHECK(v->run_file(v, 1, &name, &bytes, &len) && strcmp(co_str_text(&name), "tokenizer_it.json") == 0 &&
              !v->run_file(v, 2, &name, &bytes, &len),
          "%s", co_str_text(&name));
    CHECK_OK(co_fs_write_atomic("it.json", bytes, len));
    co_dataset_close(v);
    CHECK_OK(set_try(&v, "pairs", "dir", "a.tsv", "min_frequency", "1", "val_fraction", "0.2",
                     "tokenizer_tgt", "it.json", (char *)NULL));
    CHECK(strcmp(v->fingerprint, d->fingerprint) == 0, "a tokenizer that was written gives another set");
    co_dataset_close(v);
    v = NULL;
    CHECK_FAILS(d->def->open_vocabulary(&v, "{}", 2), CO_EINPUT, "format");
    CHECK_FAILS(d->def->open_vocabulary(&v, co_str_text(&json), json.len - 2), CO_EINPUT, "vocabulary");
    CHECK(!v, "written although refused");
    co_dataset_close(d);
    co_str_fini(&json);
    co_str_fini(&again);
    co_str_fini(&name);
}

TEST(pairs_that_are_too_long_are_left_out_counted_and_said)
{
    co_dataset *d = NULL;

    put("a.tsv", tsv);
    CHECK_OK(set_try(&d, "pairs", "dir", "a.tsv", "min_frequency", "1", "val_fraction", "0.2", "max_len", "6",
                     (char *)NULL));
    CHECK(d->count[0] + d->count[1] == 5 && d->io.max_len == 6, "%u %u", d->count[0], d->count[1]);
    CHECK(strstr(d->note, "7 pairs") && strstr(d->note, "2 of more than 6 tokens left out"), "%s", d->note);
    co_dataset_close(d);
    CHECK_FAILS(set_try(&d, "pairs", "dir", "a.tsv", "max_len", "3", (char *)NULL), CO_EINPUT,
                "nothing is left to train");
}

static const struct {
    const char *name, *text, *words;
} bad[] = {
    {"empty.tsv", "", "it is empty"},
    {"blank.tsv", "\n\n", "it is empty"},
    {"comma.tsv", "Hello,Ciao\n",
     "line 1: it has 1 field, and the it side is column 2: fields are parted by tabs, not by commas"},
    {"bars.tsv", "a\tb\nHello ||| Ciao\n", "line 2: it has 1 field"},
    {"one.tsv", "Hello\n", "data.column_src"},
    {"side.tsv", "a\tb\nHello\t  \n", "line 2: its it side is empty"},
    {"latin.tsv", "a\tb\nPerche\xE8\tc\n", "line 2: its en side is not UTF-8: byte 0xe8"},
    {"control.tsv", "a\tb\n\x02\tc\n", "control character 0x02"},
    {"list.jsonl", "[{\"en\":\"a\",\"it\":\"b\"}]\n", "begins a list"},
    {"other.jsonl", "{\"en\":\"a\",\"fr\":\"b\"}\n", "no text named \"it\" (it has en, fr)"},
    {"inner.jsonl", "{\"translation\":{\"en\":\"a\",\"it\":7}}\n", "no text named \"it\""},
    {"broken.jsonl", "{\"en\":\"a\"\n", "line 1: "},
    {"number.jsonl", "3\n", "line 1: "},
    {"void.jsonl", "{\"en\":\"\",\"it\":\"b\"}\n", "its en side is empty"},
};

TEST(what_is_wrong_with_a_file_of_pairs_is_said_with_its_line)
{
    co_dataset *d = NULL;

    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        put(bad[i].name, bad[i].text);
        CHECK_FAILS(set_try(&d, "pairs", "dir", bad[i].name, "val_fraction", "0", (char *)NULL), CO_EINPUT,
                    bad[i].words);
        CHECK(strstr(co_errmsg(), bad[i].name), "%s", co_errmsg());
    }
    CHECK(!d, "opened");
}

TEST(files_of_pairs_that_are_missing_many_or_no_longer_go_together_are_refused)
{
    co_dataset *d = NULL;

    CHECK(
        test_sh("mkdir none two parquet many; touch none/README; printf 'a\\nb\\n' > two/x.en; printf 'c\\n' "
                "> two/x.it;"
                "touch parquet/train-00000-of-00001.parquet; cp two/x.en many/a.tsv; cp two/x.en many/b.tsv;"
                "printf 'a\\tb\\nc\\td\\n' > good.tsv; printf 'a\\tb\\n' > lone.tsv; printf 'a\\n\\nb\\n' > "
                "y.en; printf 'a\\nb\\nc\\n' > y.it")
                .status == 0,
        "no files");
    const struct {
        const char *dir, *key, *value, *words;
    } asked[] = {
        {"nowhere", "file", "*", "nowhere: no such file or folder"},
        {"none", "file", "*", "no file of pairs"},
        {"parquet", "file", "*", "Parquet files are not read"},
        {"many", "file", "*", "2 files that may hold the pairs: a.tsv, b.tsv"},
        {"many", "file", "*", "cohort data check many/NAME to check"},
        {"data/en-it", "file", "*", "cohort data get en-it downloads some"},
        {"many", "file", "c*|a*", "a.tsv, line 1: it has 1 field"},
        {"two", "file", "*", "x.en, line 2: two/x.it has no such line"},
        {"y.en", "file", "*", "y.it, line 2: that line is empty in ./y.en"},
        {"good.tsv", "lang_tgt", "en", "are both en"},
        {"good.tsv", "lang_tgt", "x/y", "a language is named by"},
        {"good.tsv", "column_src", "three", "it has no column three"},
        {"good.tsv", "column_src", "2", "both sides are column 2"},
        {"good.tsv", "tokenizer_src", "good.tsv", "data.tokenizer_src=good.tsv"},
        {"lone.tsv", "val_fraction", "0.5", "leave none of 1 source sentences to train on"},
    };
    for (size_t i = 0; i < CO_COUNT(asked); i++) {
        const co_option *row = co_option_find(co_dataset_find("pairs")->options, asked[i].key);
        co_err err = row->check ? row->check(asked[i].key, asked[i].value) : CO_OK;
        if (!err)
            err = set_try(&d, "pairs", "dir", asked[i].dir, asked[i].key, asked[i].value, (char *)NULL);
        CHECK(err == CO_EINPUT && strstr(co_errmsg(), asked[i].words), "%zu: %d %s", i, (int)err, co_errmsg());
    }
}
