/* test_print.c -- what is written reads back to the same configuration and the same hash. */
#include "spec.h"

static void check_round_trip(const co_conf *c)
{
    co_str first = {0}, second = {0};
    char sha1[65], sha2[65];
    co_conf *again;
    co_conf_yaml(c, &first);
    write_config("experiment/again", co_str_text(&first));
    CHECK_OK(compose(&again, "experiment=again"));
    co_conf_yaml(again, &second);
    CHECK(!strcmp(co_str_text(&first), co_str_text(&second)), "%s\nreads back as\n%s", co_str_text(&first),
          co_str_text(&second));
    co_conf_sha256(c, sha1);
    co_conf_sha256(again, sha2);
    CHECK(!strcmp(sha1, sha2) && strlen(sha1) == 64, "%s %s", sha1, sha2);
    co_str_fini(&first);
    co_str_fini(&second);
    co_conf_free(again);
}

TEST(the_resolved_yaml_reads_back_to_the_same_configuration)
{
    static const char *const texts[] = {"",
                                        "null ",
                                        "Null",
                                        "true",
                                        "1",
                                        "~",
                                        "a b",
                                        "x: y # z",
                                        "it's",
                                        "\"q\"",
                                        "\\n",
                                        "-",
                                        "- a",
                                        "[a]",
                                        "\xC3\xA9",
                                        "a\nb\t",
                                        "\x7F",
                                        "\x01",
                                        "*a",
                                        "\xE2\x80\xA8",
                                        "\xEF\xBB\xBFx",
                                        "\xF0\x9F\x98\x80",
                                        "%d",
                                        "@x",
                                        ".5",
                                        "..",
                                        "=",
                                        "k=v",
                                        "\xC2\x85"};
    co_conf *c;
    CHECK_OK(co_conf_compose(&c, &spec, NULL, 0));
    check_round_trip(c);
    co_conf_free(c);
    for (size_t i = 0; i < CO_COUNT(texts); i++) {
        CHECK_OK(compose(&c, "model=lm", "data=folder", "optim.lr=0.1", "trainer=fsdp", "seed=-3"));
        struct folder_data *d = co_conf_fields(c, "data");
        co_free(d->path);
        d->path = co_strdup(texts[i]);
        check_round_trip(c);
        co_conf_free(c);
    }
    for (double lr = 1.0; lr > 1e-12; lr /= 3.7) {
        CHECK_OK(compose(&c, "trainer=null", "optim=adamw"));
        ((struct optim *)co_conf_fields(c, "optim"))->lr = lr;
        check_round_trip(c);
        co_conf_free(c);
    }
}

TEST(the_resolved_yaml_needs_no_file_that_was_used)
{
    co_conf *c;
    write_config("model/mlp", "name: lm\nheads: 2\n"); /* a file that takes a row's name for another row */
    write_config("trainer/mine", "max_epochs: 3\n");
    CHECK_OK(compose(&c, "model=mlp", "trainer=mine"));
    CHECK(rename("configs/trainer/mine.yaml", "gone") == 0, "rename");
    check_round_trip(c);
    co_conf_free(c);
}

static void sha_of(const char *word, char hex[65])
{
    co_conf *c;
    CHECK_OK(compose(&c, word));
    co_conf_sha256(c, hex);
    co_conf_free(c);
}

TEST(the_hash_sees_what_a_resume_may_not_change_and_nothing_else)
{
    static const char *const same[] = {"trainer.max_epochs=99", "trainer.devices=7",
                                       "trainer=fsdp",          "run.dir=x",
                                       "model.hidden=128",      "batch_size=32"};
    static const char *const other[] = {
        "seed=1",      "model=cnn",  "model.dropout=0.2", "data.batch_size=33", "trainer.on_nan=skip",
        "data=folder", "optim=adamw"};
    char base[65], hex[CO_COUNT(other)][65], one[65];
    sha_of("seed=0", base);
    for (size_t i = 0; i < CO_COUNT(same); i++) {
        sha_of(same[i], one);
        CHECK(!strcmp(one, base), "%s changes the hash", same[i]);
    }
    for (size_t i = 0; i < CO_COUNT(other); i++) {
        sha_of(other[i], hex[i]);
        CHECK(strcmp(hex[i], base), "%s does not change the hash", other[i]);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(hex[i], hex[j]), "%s and %s have one hash", other[i], other[j]);
    }
    char null[65], text[65];
    co_conf *c;
    CHECK_OK(compose(&c, "data=folder"));
    co_conf_sha256(c, null);
    ((struct folder_data *)co_conf_fields(c, "data"))->path = co_strdup("");
    co_conf_sha256(c, text);
    CHECK(strcmp(null, text), "null and the empty string have one hash");
    co_conf_free(c);
}

TEST(the_yaml_the_tree_and_the_words_look_so)
{
    co_conf *c;
    co_str s = {0};
    CHECK_OK(compose(&c, "optim.lr=0.5", "task_name='a b'"));
    co_conf_yaml(c, &s);
    static const char yaml[] = "# @package _global_\n"
                               "defaults:\n"
                               "  - override /model: mlp\n"
                               "  - override /data: digits\n"
                               "  - override /optim: sgd\n"
                               "  - override /trainer: ddp\n"
                               "seed: 0\n"
                               "task_name: \"a b\"\n"
                               "model:\n"
                               "  name: mlp\n"
                               "  hidden: 128\n"
                               "  dropout: 0.1\n"
                               "data:\n"
                               "  name: digits\n"
                               "  batch_size: 32\n"
                               "optim:\n"
                               "  name: sgd\n"
                               "  lr: 0.5\n"
                               "run:\n"
                               "  dir: null\n"
                               "trainer:\n"
                               "  max_epochs: 10\n"
                               "  devices: 0\n"
                               "  pin: true\n"
                               "  on_nan: stop\n"
                               "  strategy: ddp\n"
                               "callbacks:\n"
                               "  model_checkpoint:\n"
                               "    every_n_steps: 0\n"
                               "    save_last: true\n";
    CHECK(!strcmp(co_str_text(&s), yaml), "%s", co_str_text(&s));
    co_str_clear(&s);
    co_conf_tree(c, &s);
    static const char head[] =
        "CONFIG\n├── model\n│   ├── name: mlp\n│   ├── hidden: 128\n│   └── dropout: 0.1\n";
    CHECK(!strncmp(co_str_text(&s), head, sizeof head - 1), "%s", co_str_text(&s));
    CHECK(test_contains(co_str_text(&s), "│   └── model_checkpoint\n│       ├── every_n_steps: 0\n"), "%s",
          co_str_text(&s));
    CHECK(test_contains(co_str_text(&s), "└── task_name: \"a b\"\n"), "%s", co_str_text(&s));
    co_str_clear(&s);
    co_conf_overrides(c, &s);
    CHECK(!strcmp(co_str_text(&s), "- optim.lr=0.5\n- \"task_name='a b'\"\n"), "%s", co_str_text(&s));
    co_conf_free(c);
    co_str_fini(&s);
}

TEST(the_help_has_every_key_once_with_default_and_limits)
{
    co_str s = {0};
    co_conf_help(&spec, NULL, false, &s);
    CHECK(test_contains(co_str_text(&s), "  seed       0      of everything random\n"), "%s", co_str_text(&s));
    CHECK(test_contains(co_str_text(&s), "  model.hidden   128  width (1 to 65536; also model.net.hidden)\n"),
          "%s", co_str_text(&s));
    CHECK(test_contains(co_str_text(&s), "learning rate (at least 0)"), "%s", co_str_text(&s));
    CHECK(test_contains(co_str_text(&s), "model=  what is trained (default mlp)\n"), "%s", co_str_text(&s));
    CHECK(
        test_contains(co_str_text(&s), "trainer=single   One rank: the same numbers as ddp, one process.\n"),
        "%s", co_str_text(&s));
    const char *at = strstr(co_str_text(&s), "trainer.max_epochs");
    CHECK(at && !strstr(at + 1, "trainer.max_epochs"), "not once");
    co_str_clear(&s);
    co_conf_help(&spec, "trainer", true, &s);
    CHECK(test_contains(co_str_text(&s),
                        "| `trainer.on_nan` | `stop` | when the loss is not finite (stop\\|skip) |\n"),
          "%s", co_str_text(&s));
    CHECK(!test_contains(co_str_text(&s), "seed"), "another section");
    co_str_clear(&s);
    co_conf_help(&spec, "modl", false, &s);
    CHECK(test_contains(co_str_text(&s), "no group \"modl\"; there are: model data"), "%s", co_str_text(&s));
    co_str_fini(&s);
}
