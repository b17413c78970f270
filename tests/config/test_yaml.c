/* test_yaml.c -- YAML to a flat list of pairs, and everything it refuses. */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "harness.h"

static void list(void *ctx, const char *key, const char *value)
{
    co_str_addf(ctx, "%s=%s;", key, value);
}

static co_err parse(const char *text, co_str *out)
{
    co_str_clear(out);
    return co_conf_parse_yaml(text, strlen(text), "t.yaml", list, out);
}

TEST(nested_mappings_become_dotted_keys)
{
    static const char *const good[][2] = {
        {"a: 1\nb:\n  c: x\n  d:\n    e: 'y z'\n", "a=1;b.c=x;b.d.e=y z;"},
        {"a.b: 1\n", "a.b=1;"},
        {"{a: {b: 1}, c: 2}", "a.b=1;c=2;"},
        {"", ""},
        {"# @package _global_\n", ""},
        {"---\na: 1\n...\n", "a=1;"},
        {"a: ~\nb:\nc: null\nd: 'null'\ne: ''\nf: \"~\"\n", "a=null;b=null;c=null;d=null;e=;f=~;"},
        {"a: [1, two, 'x,y', [3]]\n", "a=[1,two,'x,y',[3]];"},
        {"a:\n- x\n- it's\n", "a=[x,'it\\'s'];"},
        {"a: []\n", "a=[];"},
        {"a: ['1', 1, 'null', null, a b]\n", "a=['1',1,'null',null,'a b'];"},
        {"a: ${b}\n", "a=${b};"},
        {"defaults:\n- base\n- /model/x\n- trainer: [a, b]\nc: 1\n", "trainer=[a,b];c=1;"},
        {"a: {}\n", ""},
        {"a: true\nb: 1e-3\nc: 007\n", "a=true;b=1e-3;c=007;"},
        {"a: |\n  two\n  lines\n", "a=two\nlines\n;"},
        {"defaults: [ {model: cnn}, {data: digits} ]\nseed: 1\n", "model=cnn;data=digits;seed=1;"},
        {"defaults:\n- _self_\n- override /model: cnn\n- optional data: x\n", "model=cnn;data=x;"},
        {"defaults:\n- override /trainer: null\nmodel: {hidden: 3}\n", "trainer=null;model.hidden=3;"},
    };
    co_str out = {0};
    for (size_t i = 0; i < CO_COUNT(good); i++) {
        CHECK_OK(parse(good[i][0], &out));
        CHECK(!strcmp(co_str_text(&out), good[i][1]), "%s: [%s]", good[i][0], co_str_text(&out));
    }
    co_str_fini(&out);
}

TEST(what_a_yaml_file_may_not_hold_is_refused_with_its_line)
{
    static const char *const bad[][2] = {
        {"a: 1\nb: &x 2\n", "t.yaml:2: anchors and aliases"},
        {"a: &x [1]\n", "t.yaml:1: anchors and aliases"},
        {"a: *x\n", "t.yaml:1: anchors and aliases"},
        {"a: !!str 1\n", "t.yaml:1: tags"},
        {"a: !x {b: 1}\n", "t.yaml:1: tags"},
        {"a: 1\nb: 2\na: 3\n", "t.yaml:3: the key \"a\" stands here and in line 1"},
        {"a: {x: 1}\nb: 2\na: {y: 3}\n", "t.yaml:3: the key \"a\" stands here and in line 1"},
        {"a:\n  b: 1\na.b: 2\n", "t.yaml:3: the key \"a.b\" stands here and in line 2"},
        {"defaults: [{model: a}, {model: b}]", "the key \"model\" stands here"},
        {"defaults: []\ndefaults: []\n", "t.yaml:2: a second defaults list"},
        {"defaults: 3\n", "t.yaml:1: defaults is a list"},
        {"defaults:\n- _self_\n- _self_\n", "t.yaml:3: the key \"_self_\" stands here"},
        {"defaults:\n- override /model\n", "t.yaml:2: \"override /model\" lacks the choice"},
        {"defaults:\n- a//b\n", "t.yaml:2: \"a//b\" is not a group"},
        {"defaults:\n- {model: a, data: b}\n", "one group per entry"},
        {"defaults:\n- model: {a: b}\n", "a choice is a name, or a list of names"},
        {"defaults:\n- model@x: a\n", "t.yaml:2: \"model@x\": group@package is not known here"},
        {"- a\n", "t.yaml:1: the file must be"},
        {"just words\n", "t.yaml:1: the file must be"},
        {"a: 1\n---\nb: 2\n", "t.yaml:2: a second document"},
        {"a: [1, {b: 2}]\n", "a mapping inside a list"},
        {"? [a]\n: 1\n", "a key must be a plain word"},
        {"'a b': 1\n", "t.yaml:1: \"a b\" is not a key"},
        {"<<: 1\n", "\"<<\" is not a key"},
        {"a: \"x\\0y\"\n", "t.yaml:1: a NUL character"},
        {"a: 1\n  b: 2\n", "t.yaml:2: mapping values are not allowed"},
        {"a: [1\n", "t.yaml:2:"},
        {"ok: 1\na: \xFF\xFF\n", "t.yaml:2: "},
    };
    co_str out = {0};
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        CHECK_FAILS(parse(bad[i][0], &out), CO_EINPUT, bad[i][1]);
        CHECK(out.len == 0, "pairs were handed out of a bad file");
    }
    co_str_fini(&out);
}

TEST(yaml_depth_size_and_number_of_keys_have_limits)
{
    co_str text = {0}, out = {0};
    for (int i = 0; i < 33; i++)
        co_str_add(&text, "{a: ");
    CHECK_FAILS(parse(co_str_text(&text), &out), CO_EINPUT, "more than 32 levels");
    co_str_clear(&text);
    co_str_add(&text, "a: ");
    for (int i = 0; i < 100000; i++)
        co_str_add(&text, "[");
    CHECK_FAILS(parse(co_str_text(&text), &out), CO_EINPUT, "more than 32 levels");
    co_str_clear(&text);
    for (int i = 0; i <= 4096; i++)
        co_str_addf(&text, "k%d: 1\n", i);
    CHECK_FAILS(parse(co_str_text(&text), &out), CO_EINPUT, "t.yaml:4097: more than 4096 keys");
    co_str_clear(&text);
    for (int i = 0; i < (1 << 20) + 1; i++)
        co_str_add(&text, "#");
    CHECK_FAILS(parse(co_str_text(&text), &out), CO_EINPUT, "the limit is 1048576");
    co_str_fini(&text);
    co_str_fini(&out);
}
