/* test_word.c -- one word of the command line. */
#include "config/config.h"

#include <string.h>

#include "harness.h"

static char got_key[256], got_value[256];

static void keep(void *ctx, const char *key, const char *value)
{
    snprintf(got_key, sizeof got_key, "%s", key);
    snprintf(got_value, sizeof got_value, "%s", value);
}

TEST(a_word_is_a_key_and_a_value)
{
    static const char *const good[][3] = {
        {"a.b=c", "a.b", "c"},
        {"model=mlp", "model", "mlp"},
        {"+a.b=1", "a.b", "1"},
        {"++a=1", "a", "1"},
        {"a=", "a", ""},
        {"a=null", "a", "null"},
        {"a= x y ", "a", "x y"},
        {"a='x y '", "a", "x y "},
        {"a=\"it's\"", "a", "it's"},
        {"a='it\\'s'", "a", "it's"},
        {"a='c:\\\\'", "a", "c:\\"},
        {"a='c:\\dir'", "a", "c:\\dir"},
        {"a='\\\\\\''", "a", "\\'"},
        {"a=b=c", "a", "b=c"},
        {"a=[1,2]", "a", "[1,2]"},
        {"a=''", "a", ""},
        {"a-b.c_d.0=x", "a-b.c_d.0", "x"},
        {"a=\xC3\xA9t\xC3\xA9", "a", "\xC3\xA9t\xC3\xA9"},
    };
    for (size_t i = 0; i < CO_COUNT(good); i++) {
        CHECK_OK(co_conf_parse_word(good[i][0], keep, NULL));
        CHECK(!strcmp(got_key, good[i][1]) && !strcmp(got_value, good[i][2]), "%s: %s is [%s]", good[i][0],
              got_key, got_value);
    }
}

TEST(a_word_that_is_none_is_refused_by_name)
{
    static const char *const bad[][2] = {
        {"foo", "\"foo\" is not key=value"},
        {"", "\"\" is not key=value"},
        {"=x", "is not a key"},
        {"a..b=1", "\"a..b\" is not a key"},
        {".a=1", "is not a key"},
        {"a.=1", "is not a key"},
        {"+++a=1", "is not a key"},
        {"~a=1", "\"~a\" is not a key"},
        {"a b=1", "is not a key"},
        {"a='x", "the quote is not closed"},
        {"a='x\\'", "the quote is not closed"},
        {"a='x'y", "something follows the closing quote"},
        {"a=${b}", "${...} is not resolved"},
        {"a='${b}'", "${...} is not resolved"},
        {"a=\xFF", "is not UTF-8"},
        {"a=\xC3", "is not UTF-8"},
        {"a=\xED\xA0\x80", "is not UTF-8"},
        {"a=\xC0\x80", "is not UTF-8"},
    };
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK_FAILS(co_conf_parse_word(bad[i][0], keep, NULL), CO_EINPUT, bad[i][1]);
}
