/* test_compose.c -- which source wins, and the sentence for every mistake. */
#include "spec.h"

TEST(defaults_hold_when_nothing_is_said)
{
    co_conf *c;
    CHECK_OK(co_conf_compose(&c, &spec, NULL, 0));
    struct core *core = co_conf_core(c);
    struct mlp *m = co_conf_fields(c, "model");
    CHECK(core->batch_size == 32 && core->max_epochs == 10 && core->pin && !core->run_dir, "core defaults");
    CHECK(m->hidden == 128 && m->dropout == 0.1, "row defaults");
    CHECK(!strcmp(co_conf_choice(c, "model"), "mlp") && co_conf_row_of(c, "model") == 0, "fallback row");
    CHECK(!strcmp(co_conf_choice(c, "trainer"), "ddp") && co_conf_row_of(c, "trainer") == -1, "file group");
    CHECK(!strcmp(co_conf_choice(c, "experiment"), ""), "no experiment");
    CHECK(!co_conf_is_set(c, "model.hidden") && !co_conf_is_set(c, "model"), "nothing was set");
    CHECK(!co_conf_fields(c, "trainer") && !co_conf_fields(c, "nonsense"), "no fields there");
    co_conf_free(c);
    co_conf_free(NULL);
}

TEST(words_set_keys_of_rows_and_tables_and_the_later_wins)
{
    co_conf *c;
    CHECK_OK(compose(&c, "model=lm", "model.heads=8", "data=folder", "data.path='/x y'", "data.batch_size=7",
                     "+seed=3", "++trainer.on_nan=skip", "seed=4", "task_name=", "trainer.pin=false"));
    struct core *core = co_conf_core(c);
    struct lm *lm = co_conf_fields(c, "model");
    struct folder_data *d = co_conf_fields(c, "data");
    CHECK(lm->heads == 8 && lm->width == 64, "heads %lld", (long long)lm->heads);
    CHECK(!strcmp(d->path, "/x y") && core->batch_size == 7, "both tables of data.");
    CHECK(core->seed == 4 && core->on_nan == 1 && !*core->task_name && !core->pin, "core");
    CHECK(co_conf_is_set(c, "model.heads") && !co_conf_is_set(c, "model.width"), "is_set");
    CHECK(co_conf_is_set(c, "model") && co_conf_is_set(c, "model.name"), "the row was chosen");
    co_conf_free(c);
}

TEST(a_group_file_lies_under_an_experiment_which_lies_under_words)
{
    co_conf *c;
    write_config("trainer/big", "max_epochs: 50\ndevices: 4\non_nan: skip\n");
    write_config("experiment/x", "defaults:\n- override /trainer: big\n- model: lm\nseed: 5\ntrainer:\n"
                                 "  devices: 2\nmodel: {heads: 2}\n");
    CHECK_OK(compose(&c, "seed=6", "experiment=x"));
    struct core *core = co_conf_core(c);
    CHECK(core->max_epochs == 50 && core->devices == 2 && core->on_nan == 1 && core->seed == 6,
          "%lld %lld %d %lld", (long long)core->max_epochs, (long long)core->devices, core->on_nan,
          (long long)core->seed);
    CHECK(((struct lm *)co_conf_fields(c, "model"))->heads == 2, "heads");
    CHECK(!strcmp(co_conf_choice(c, "experiment"), "x") && !strcmp(co_conf_choice(c, "trainer"), "big"),
          "choices");
    co_conf_free(c);

    CHECK_OK(compose(&c, "experiment=x", "trainer=null"));
    core = co_conf_core(c);
    CHECK(core->max_epochs == 10 && core->devices == 2 && !*co_conf_choice(c, "trainer"), "no trainer file");
    co_conf_free(c);
}

TEST(built_in_files_are_found_anywhere_and_a_folder_beats_them)
{
    co_conf *c;
    CHECK_OK(compose(&c, "experiment=demo", "trainer=single"));
    struct core *core = co_conf_core(c);
    CHECK(core->batch_size == 64 && core->devices == 1 && core->max_epochs == 15, "demo");
    CHECK(!strcmp(co_conf_choice(c, "optim"), "adamw") && co_conf_row_of(c, "model") == 1, "demo's groups");
    co_conf_free(c);

    write_config("trainer/single", "devices: 3\n");
    CHECK_OK(compose(&c, "trainer=single"));
    CHECK(((struct core *)co_conf_core(c))->devices == 3, "the folder's file");
    co_conf_free(c);

    CHECK(rename("configs", "mine") == 0, "rename");
    co_conf_spec other = spec;
    other.config_dir = "mine";
    CHECK_OK(co_conf_compose(&c, &other, (const char *const[]){"trainer=single"}, 1));
    CHECK(((struct core *)co_conf_core(c))->devices == 3, "the folder given");
    co_conf_free(c);
    other.config_dir = "nowhere";
    CHECK_FAILS(co_conf_compose(&c, &other, NULL, 0), CO_EINPUT, "configuration folder nowhere is not there");
}

TEST(a_file_of_a_registry_group_may_name_its_row)
{
    co_conf *c;
    write_config("model/big", "name: mlp\nhidden: 4096\n");
    write_config("model/mlp", "hidden: 99\n");
    write_config("model/bad", "name: resnt\n");
    write_config("model/odd", "hidden: 1\n");
    CHECK_OK(compose(&c, "model=big", "model.dropout=0"));
    CHECK(((struct mlp *)co_conf_fields(c, "model"))->hidden == 4096, "hidden");
    CHECK(!strcmp(co_conf_choice(c, "model"), "big") && co_conf_row_of(c, "model") == 0, "big is an mlp");
    co_conf_free(c);
    CHECK_OK(co_conf_compose(&c, &spec, NULL, 0));
    CHECK(((struct mlp *)co_conf_fields(c, "model"))->hidden == 99, "a file of the row's own name");
    co_conf_free(c);
    CHECK_FAILS(compose(&c, "model=bad"), CO_EINPUT,
                "configs/model/bad.yaml:1: no model \"resnt\"; there are: bad big cnn linear lm mlp odd");
    CHECK_FAILS(compose(&c, "model=odd"), CO_EINPUT,
                "configs/model/odd.yaml does not say which model it sets; add a line \"name: ...\" with one "
                "of: mlp cnn");
}

TEST(a_file_with_package_global_starts_at_the_root)
{
    co_conf *c;
    write_config("debug/small",
                 "# @package _global_\n\n# small\ntrainer: {max_epochs: 1}\ntask_name: debug\n");
    CHECK_OK(compose(&c, "debug=small"));
    struct core *core = co_conf_core(c);
    CHECK(core->max_epochs == 1 && !strcmp(core->task_name, "debug"), "root keys");
    co_conf_free(c);
}

TEST(an_alias_sets_its_key_and_must_agree_with_it)
{
    co_conf *c;
    CHECK_OK(compose(&c, "datamodule.batch_size=5", "model.net.hidden=6"));
    CHECK(((struct core *)co_conf_core(c))->batch_size == 5, "alias of a core key");
    CHECK(((struct mlp *)co_conf_fields(c, "model"))->hidden == 6, "alias of a row's key");
    CHECK(co_conf_is_set(c, "data.batch_size"), "set");
    co_conf_free(c);
    CHECK_OK(compose(&c, "batch_size=5", "data.batch_size=5"));
    co_conf_free(c);
    CHECK_FAILS(compose(&c, "datamodule.batch_size=5", "data.batch_size=6"), CO_EINPUT,
                "datamodule.batch_size=5 and data.batch_size=6 are the same key");
    write_config("experiment/x", "data: {batch_size: 9}\n");
    CHECK_OK(compose(&c, "experiment=x", "batch_size=5"));
    CHECK(((struct core *)co_conf_core(c))->batch_size == 5, "a word over a file is no disagreement");
    co_conf_free(c);
}

TEST(every_mistake_is_answered_by_what_was_meant)
{
    static const char *const bad[][2] = {
        {"optim.lrr=1",
         "unknown key \"optim.lrr\"; did you mean optim.lr? (cohort train --help all lists all keys)"},
        {"trainer.max_epoch=1", "did you mean trainer.max_epochs?"},
        {"modle=mlp", "unknown key \"modle\"; did you mean model?"},
        {"qqqqqqq.zzzzz=1", "unknown key \"qqqqqqq.zzzzz\" (cohort"},
        {"model.heads=3", "model.heads needs model=lm; the line has model=mlp, the default"},
        {"data.path=/x", "data.path needs data=folder; the line has data=digits, the default"},
        {"model=resnt", "no model \"resnt\"; there are: cnn linear lm mlp"},
        {"model=null", "no model \"null\""},
        {"model.name=resnt", "no model \"resnt\""},
        {"trainer=dpp",
         "no trainer \"dpp\"; did you mean ddp? There are: cpu ddp ddp_sim default fsdp single"},
        {"trainer=../../etc/passwd", "no trainer \"../../etc/passwd\""},
        {"experiment=demoo", "no experiment \"demoo\"; did you mean demo? There are: cifar"},
        {"seed=x", "seed"},
        {"model.hidden=0", "model.hidden: 0 is out of range"},
        {"trainer.on_nan=go", "stop|skip"},
        {"foo", "\"foo\" is not key=value"},
        {"trainer.foo.bar=1", "unknown key \"trainer.foo.bar\" (cohort train --help all"},
        {"optim.foo=1", "unknown key \"optim.foo\" (cohort train --help all"},
    };
    co_conf *c = NULL;
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        CHECK_FAILS(compose(&c, bad[i][0]), CO_EINPUT, bad[i][1]);
        CHECK(!c, "out was written");
    }
}

TEST(all_mistakes_of_a_line_are_told_at_once_a_line_each)
{
    co_conf *c = NULL;
    write_config("trainer/a", "devices: x\nmax_epoch: 3\n");
    CHECK_FAILS(
        compose(&c, "foo", "optim.lrr=1", "seed=x", "trainer=a", "model.hidden=0", "task_name=${no.such}"),
        CO_EINPUT, "");
    CHECK(
        strcmp(co_errmsg(),
               "\"foo\" is not key=value; write for example trainer.max_epochs=5 or model=mlp (cohort "
               "train --help "
               "all lists all keys)\n"
               "configs/trainer/a.yaml:1: trainer.devices: \"x\" is not a whole number (for example 0)\n"
               "configs/trainer/a.yaml:2: unknown key \"trainer.max_epoch\"; did you mean "
               "trainer.max_epochs? (cohort "
               "train --help all lists all keys)\n"
               "unknown key \"optim.lrr\"; did you mean optim.lr? (cohort train --help all lists all keys)\n"
               "seed: \"x\" is not a whole number (for example 0)\n"
               "model.hidden: 0 is out of range (allowed: 1 to 65536)\n"
               "task_name: ${no.such}: unknown key \"no.such\" (cohort train --help all lists all keys)") == 0,
        "%s", co_errmsg());
    CHECK(!c, "out was written");

    /* what is unknown only because of an earlier mistake is not told */
    CHECK_FAILS(compose(&c, "model=resnt", "model.blocks=3", "trainer=dpp", "seed=x"), CO_EINPUT, "no model");
    CHECK(strcmp(co_errmsg(),
                 "no model \"resnt\"; there are: cnn linear lm mlp\n"
                 "no trainer \"dpp\"; did you mean ddp? There are: a cpu ddp ddp_sim default fsdp single\n"
                 "seed: \"x\" is not a whole number (for example 0)") == 0,
          "%s", co_errmsg());
    CHECK_FAILS(compose(&c, "experiment=demoo", "model.heads=3"), CO_EINPUT, "no experiment");
    CHECK(!strchr(co_errmsg(), '\n'), "%s", co_errmsg());
}

TEST(more_mistakes_than_there_is_room_for_are_counted)
{
    const char *words[200];
    char text[200][64];
    co_conf *c = NULL;
    for (int i = 0; i < 200; i++) {
        snprintf(text[i], sizeof text[i], "no_such_key_of_any_table_%d=1", i);
        words[i] = text[i];
    }
    CHECK_FAILS(co_conf_compose(&c, &spec, words, 200), CO_EINPUT, "no_such_key_of_any_table_0");
    const char *last = strrchr(co_errmsg(), '\n');
    CHECK(last && strncmp(last, "\nand 1", 6) == 0 && test_contains(last, " more"), "%s", co_errmsg());
}

TEST(a_mistake_in_a_file_names_file_and_line)
{
    co_conf *c;
    write_config("trainer/a", "devices: 1\nmax_epoch: 3\n");
    write_config("trainer/b", "\nmax_epochs: 0\n");
    write_config("trainer/c", "defaults:\n- model: mlp\n");
    write_config("trainer/d", "a: [\n");
    write_config("experiment/a", "defaults:\n- override /model: resnt\n");
    write_config("experiment/b", "defaults:\n- override /modl: mlp\n");
    write_config("experiment/c", "seed: 1\nmodel:\n  heads: 3\n");
    write_config("experiment/d", "defaults:\n- experiment: a\n");
    write_config("experiment/e", "model: {name: mlp, hidden: 1}\n");
    CHECK_FAILS(compose(&c, "trainer=a"), CO_EINPUT,
                "configs/trainer/a.yaml:2: unknown key \"trainer.max_epoch\"; did");
    CHECK_FAILS(compose(&c, "trainer=b"), CO_EINPUT,
                "configs/trainer/b.yaml:2: trainer.max_epochs: 0 is out of");
    CHECK_FAILS(compose(&c, "trainer=c"), CO_EINPUT, "configs/trainer/c.yaml:2: no trainer/model \"mlp\"");
    CHECK_FAILS(compose(&c, "trainer=d"), CO_EINPUT, "configs/trainer/d.yaml:2: ");
    CHECK_FAILS(compose(&c, "experiment=a"), CO_EINPUT,
                "configs/experiment/a.yaml:2: no model \"resnt\"; there");
    CHECK_FAILS(compose(&c, "experiment=b"), CO_EINPUT,
                "configs/experiment/b.yaml:2: unknown key \"modl\"; did you mean model");
    CHECK_FAILS(compose(&c, "experiment=c"), CO_EINPUT,
                "configs/experiment/c.yaml:3: model.heads needs model=lm");
    CHECK_FAILS(compose(&c, "experiment=d"), CO_EINPUT,
                "configs/experiment/d.yaml:2: an experiment cannot choose");
    CHECK_FAILS(compose(&c, "experiment=e", "model=cnn"), CO_EINPUT,
                "e.yaml:1: model=cnn has no key \"hidden\"");
    CHECK_OK(co_fs_mkdirs("configs/experiment/f.yaml"));
    CHECK_FAILS(compose(&c, "experiment=f"), CO_EINPUT, "configs/experiment/f.yaml");
}

static co_err body(void *ctx)
{
    co_conf *c;
    co_str s = {0};
    CO_TRY(compose(&c, "experiment=x", "model=lm", "data=folder", "data.path='a'", "batch_size=3"));
    co_conf_yaml(c, &s);
    co_conf_tree(c, &s);
    co_conf_help(&spec, NULL, true, &s);
    co_conf_free(c);
    co_err err = co_str_err(&s);
    co_str_fini(&s);
    return err;
}

TEST(every_failing_allocation_of_compose_is_an_error_and_no_leak)
{
    write_config("experiment/x", "seed: 5\ntrainer:\n  devices: 2\ndefaults: [{trainer: single}]\n");
    test_each_alloc_fails(body, NULL);
}
