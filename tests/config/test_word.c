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
        {"a='b=c'", "a", "b=c"},
        {"a=b\\=c", "a", "b=c"},
        {"a=[ 1 , 'x, y' ,[b]]", "a", "[1,'x, y',[b]]"},
        {"a=['1',1,TRUE,'it\\'s']", "a", "['1',1,TRUE,'it\\'s']"},
        {"a=[]", "a", "[]"},
        {"a={b:1}", "a.b", "1"},
        {"a={b:{c: x y }}", "a.b.c", "x y"},
        {"a=\\{x\\}", "a", "{x}"},
        {"a=c:\\dir", "a", "c:\\dir"},
        {"a=NULL", "a", "null"},
        {"a=${b}", "a", "${b}"},
        {"a=x${oc.env:B,'c, }'}y", "a", "x${oc.env:B,'c, }'}y"},
        {"a=int(2.9)", "a", "2"},
        {"a=str(1e3)", "a", "1000.0"},
        {"a=bool('false')", "a", "false"},
        {"a=sort([b,c,a],reverse=true)", "a", "[c,b,a]"},
        {"a/b=c", "a/b", "c"},
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
        {"~=1", "is not a key"},
        {"~~a", "is not a key"},
        {"~a={b:1}", "takes one value, not a dict"},
        {"a=1,2", "train -m` runs them all"},
        {"a=choice(1,2)", "train -m` runs them all"},
        {"a=range(1,3)", "train -m`"},
        {"a=glob(*)", "train -m`"},
        {"a=[choice(1,2)]", "alternatives cannot stand inside a value"},
        {"a=b=c", "\"=\" may not stand there; quote the value or put a backslash before it"},
        {"a=x#y", "\"#\" may not stand there; quote the value"},
        {"a=x'y'", "a quote inside an unquoted value"},
        {"a=[1,2", "\"]\" is missing"},
        {"a=[1,]", "a value is missing"},
        {"a={b:1", "\"}\" is missing"},
        {"a={b}", "a dict is {key:value,...}"},
        {"a={b c:1}", "\"b c\" is not a key"},
        {"a=[1]x", "may not stand there"},
        {"a=1)", "may not stand there"},
        {"a=${b", "${ is not closed"},
        {"a=flot(1)", "no function flot(); did you mean float"},
        {"a=interval(0,1)", "leaves the values to chance"},
        {"a=int(x)", "int(x): that cannot be made of it"},
        {"a@b=c", "group@package is not known here"},
        {"a b=1", "is not a key"},
        {"a='x", "the quote is not closed"},
        {"a='x\\'", "the quote is not closed"},
        {"a='x'y", "something follows the closing quote"},
        {"a=\xFF", "is not UTF-8"},
        {"a=\xC3", "is not UTF-8"},
        {"a=\xED\xA0\x80", "is not UTF-8"},
        {"a=\xC0\x80", "is not UTF-8"},
    };
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK_FAILS(co_conf_parse_word(bad[i][0], keep, NULL), CO_EINPUT, bad[i][1]);
}
