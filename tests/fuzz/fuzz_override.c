/* fuzz_override.c -- any lines as words: parsed alone, composed together, and swept over; what composes is
 * written as YAML that parses, whatever its strings hold; the words of a job of a sweep parse. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fields {
    int64_t i;
    double f;
    bool b;
    char *s;
    int e;
};
static const co_option options[] = {
    {"i", CO_OPT_INT, offsetof(struct fields, i), "1", "", .min = 0, .max = 9, .alias = "k.i j"},
    {"f", CO_OPT_FLOAT, offsetof(struct fields, f), "1", ""},
    {"b", CO_OPT_BOOL, offsetof(struct fields, b), "no", ""},
    {"s", CO_OPT_STR, offsetof(struct fields, s), "null", ""},
    {"e", CO_OPT_ENUM, offsetof(struct fields, e), "x", "", .choices = "x|y"},
    {0}};
static const co_conf_row rows[] = {{"p", "", options, sizeof(struct fields)}, {"q", "", options + 5, 1}};
static const co_conf_table tables[] = {{"", options}};
static const co_conf_group groups[] = {{"g", "p", rows, 2, ""}, {"trainer", NULL, NULL, 0, ""}};
static const co_conf_spec spec = {tables, 1, sizeof(struct fields), groups, 2, NULL};

static void keep(void *ctx, const char *key, const char *value)
{
    CO_ASSERT(*key && strlen(value) <= 8 * (size_t)ctx + 32, "a pair larger than its word");
}

static void ignore(void *ctx, const char *key, const char *value) {}

static void compose(const char *const *words, int n)
{
    co_conf *c;
    co_str text = {0};
    if (co_conf_compose(&c, &spec, words, n))
        return;
    co_conf_yaml(c, &text);
    CO_ASSERT(co_conf_parse_yaml(co_str_text(&text), text.len, "own", ignore, NULL) == CO_OK, co_errmsg());
    co_str_fini(&text);
    co_conf_free(c);
}

static void sweep(const char *const *words, int n)
{
    co_conf_jobs *j;
    if (co_conf_sweep(&j, &spec, words, n))
        return;
    for (int i = 0; i < n; i++) {
        const char *word = co_conf_jobs_words(j, co_conf_jobs_count(j) - 1)[i];
        co_err err = co_conf_parse_word(word, ignore, NULL);
        CO_ASSERT(!err || !co_conf_jobs_swept(j, i) || strstr(co_errmsg(), "is not a key"), co_errmsg());
    }
    co_conf_jobs_free(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *words[16];
    int n = 0;
    char *text = malloc(size + 1), *rest = text, *word;
    memcpy(text, data, size);
    text[size] = '\0';
    while (n < 16 && (word = strsep(&rest, "\n"))) {
        words[n++] = word;
        if (co_conf_parse_word(word, keep, (void *)strlen(word)))
            CO_ASSERT(*co_errmsg(), "an error without a message");
    }
    compose(words, n);
    sweep(words, n);
    free(text);
    return 0;
}
