/* test_grammar.c -- what is taken away, resolved, brought in by defaults lists, and swept over. */
#include "spec.h"

#include <stdlib.h>

TEST(a_key_taken_away_has_its_default_again)
{
    co_conf *c;
    write_config("experiment/x", "seed: 5\ntrainer: {devices: 2, max_epochs: 3}\n");
    CHECK_OK(compose(&c, "experiment=x", "~seed", "~trainer.devices=2", "batch_size=7", "~data.batch_size"));
    struct core *core = co_conf_core(c);
    CHECK(core->seed == 0 && core->devices == 0 && core->max_epochs == 3 && core->batch_size == 32, "keys");
    CHECK(!co_conf_is_set(c, "seed") && co_conf_is_set(c, "trainer.max_epochs"), "set");
    co_conf_free(c);
    CHECK_OK(
        compose(&c, "experiment=x", "~callbacks.model_checkpoint", "~trainer", "seed=1", "~seed", "seed=2"));
    core = co_conf_core(c);
    CHECK(core->seed == 2 && core->max_epochs == 3 && !*co_conf_choice(c, "trainer"), "a group, in order");
    co_conf_free(c);
    CHECK_FAILS(compose(&c, "~seed=3"), CO_EINPUT, "~seed=3: its value is 0, so it is not reset");
    CHECK_FAILS(compose(&c, "~sead"), CO_EINPUT, "unknown key \"sead\"; did you mean seed?");
    CHECK_FAILS(compose(&c, "~model"), CO_EINPUT, "there is always one model");
    CHECK_FAILS(compose(&c, "~model.name"), CO_EINPUT, "a row's name cannot be reset");
    CHECK_FAILS(compose(&c, "~trainer=fsdp"), CO_EINPUT, "the choice is \"ddp\"");
}

TEST(a_dict_sets_the_keys_below_it_and_a_section_takes_nothing_else)
{
    co_conf *c;
    CHECK_OK(compose(&c, "callbacks.model_checkpoint={every_n_steps:5,save_last:false}", "run={dir:'null'}",
                     "model={hidden:3}"));
    struct core *core = co_conf_core(c);
    CHECK(core->every_n_steps == 5 && !core->save_last && !strcmp(core->run_dir, "null"), "keys");
    CHECK(((struct mlp *)co_conf_fields(c, "model"))->hidden == 3, "below a group");
    co_conf_free(c);
    CHECK_FAILS(compose(&c, "run={dri:x}"), CO_EINPUT, "unknown key \"run.dri\"; did you mean run.dir?");
    CHECK_FAILS(compose(&c, "rum={}"), CO_EINPUT, "unknown key \"rum\"");
    CHECK_FAILS(compose(&c, "run=x"), CO_EINPUT, "run is a section");
}

TEST(expressions_are_resolved_when_all_is_known)
{
    co_conf *c;
    setenv("COHORT_T", "it's ${seed}", 1);
    unsetenv("COHORT_U");
    write_config("experiment/x",
                 "task_name: ${model.name}-${trainer.strategy}\nrun:\n  dir: ${..task_name}/x\n"
                 "data: {path: '${oc.env:COHORT_T}'}\n");
    CHECK_OK(compose(&c, "experiment=x", "data=folder", "model=lm", "seed=${model.heads}", "model.heads=8",
                     "trainer.devices=${oc.env:COHORT_U,3}", "trainer.pin=${oc.decode:no}"));
    struct core *core = co_conf_core(c);
    struct folder_data *d = co_conf_fields(c, "data");
    CHECK(!strcmp(core->task_name, "lm-ddp") && !strcmp(core->run_dir, "lm-ddp/x"), "%s", core->run_dir);
    CHECK(core->seed == 8 && core->devices == 3 && !core->pin, "%lld", (long long)core->seed);
    CHECK(!strcmp(d->path, "it's ${seed}"), "the environment is not read again: %s", d->path);
    co_conf_free(c);
    CHECK_OK(compose(&c, "run.dir=${now:%Y}-${now:%Y}", "task_name=${oc.select:nothing,null}"));
    core = co_conf_core(c);
    CHECK(strlen(core->run_dir) == 9 && !memcmp(core->run_dir, core->run_dir + 5, 4) && !core->task_name,
          "%s", core->run_dir);
    co_conf_free(c);
}

TEST(expressions_that_cannot_be_resolved_are_refused_by_name)
{
    static const char *const bad[][2] = {
        {"task_name=${task_name}", "task_name needs its own value"},
        {"task_name=${sead}", "${sead}: unknown key \"sead\"; did you mean seed?"},
        {"task_name=${model}", "${model} is a section"},
        {"task_name=${oc.evn:X}", "no resolver \"oc.evn\": did you mean oc.env"},
        {"task_name=${hydra:runtime.cwd}", "Hydra's own settings do not exist here"},
        {"task_name=${oc.env:COHORT_U}", "the environment has no COHORT_U; set it, or write"},
        {"task_name=${...seed}", "more dots than task_name has sections"},
        {"task_name=${}", "is not the name of a key"},
        {"seed=${task_name}", "seed: \"train\" is not a whole number"},
        {"task_name=???", "task_name must be given"},
        {"task_name=${oc.env:A,b,c}", "more than two arguments"},
    };
    co_conf *c;
    unsetenv("COHORT_U");
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK_FAILS(compose(&c, bad[i][0]), CO_EINPUT, bad[i][1]);
    CHECK_FAILS(compose(&c, "task_name=${run.dir}", "run.dir=${task_name}"), CO_EINPUT,
                "run.dir <- task_name <- run.dir");
    write_config("experiment/x", "seed: 1\nrun: {dir: \"???\"}\n");
    CHECK_FAILS(compose(&c, "experiment=x"), CO_EINPUT, "configs/experiment/x.yaml:2: run.dir must be given");
    CHECK_OK(compose(&c, "experiment=x", "run.dir=y"));
    co_conf_free(c);
}

TEST(what_came_from_the_environment_is_not_written_out)
{
    co_conf *c, *again;
    co_str s = {0};
    setenv("COHORT_SECRET", "hunter2", 1);
    CHECK_OK(compose(&c, "data=folder", "data.path=${oc.env:COHORT_SECRET}", "run.dir=${data.path}/x",
                     "task_name=\\\\\\${seed}"));
    CHECK(!strcmp(((struct core *)co_conf_core(c))->run_dir, "hunter2/x"), "resolved in the run");
    co_conf_yaml(c, &s);
    co_conf_tree(c, &s);
    co_conf_overrides(c, &s);
    CHECK(!strstr(co_str_text(&s), "hunter2"), "%s", co_str_text(&s));
    CHECK(strstr(co_str_text(&s), "path: \"${oc.env:COHORT_SECRET}\"\n"), "%s", co_str_text(&s));
    CHECK(strstr(co_str_text(&s), "dir: \"${data.path}/x\"\n"), "%s", co_str_text(&s));
    co_str_clear(&s);
    co_conf_yaml_all(c, &s);
    CHECK(strstr(co_str_text(&s), "dir: hunter2/x\n"), "%s", co_str_text(&s));
    co_str_clear(&s);
    co_conf_yaml(c, &s);
    write_config("experiment/again", co_str_text(&s));
    CHECK_OK(compose(&again, "experiment=again"));
    CHECK(!strcmp(((struct core *)co_conf_core(again))->run_dir, "hunter2/x"), "read back");
    CHECK(!strcmp(((struct core *)co_conf_core(again))->task_name, ((struct core *)co_conf_core(c))->task_name),
          "%s", ((struct core *)co_conf_core(again))->task_name);
    co_conf_free(again);
    co_conf_free(c);
    co_str_fini(&s);
}

TEST(a_value_that_would_grow_without_end_is_refused)
{
    co_conf *c;
    co_str word = {0};
    co_str_add(&word, "task_name=");
    for (int i = 0; i < 2000; i++)
        co_str_add(&word, "${run.dir}");
    co_str path = {0};
    co_str_add(&path, "run.dir=");
    for (int i = 0; i < 2000; i++)
        co_str_add(&path, "abcdefgh");
    CHECK_FAILS(compose(&c, co_str_text(&word), co_str_text(&path)), CO_EINPUT, "grows over 1048576 bytes");
    co_str_fini(&word);
    co_str_fini(&path);
}

TEST(defaults_lists_bring_files_in_order_and_overrides_reach_other_groups)
{
    co_conf *c;
    write_config("trainer/base", "max_epochs: 3\ndevices: 3\n");
    write_config("trainer/after", "defaults:\n- base\n- optional nothing\ndevices: 4\n");
    write_config("trainer/before", "defaults:\n- _self_\n- base\ndevices: 4\non_nan: skip\n");
    write_config("debug/d", "# @package _global_\ndefaults:\n- override /trainer: after\nseed: 9\n");
    write_config("experiment/x", "defaults:\n- override /trainer: before\nseed: 8\n");
    write_config("callbacks/one", "# @package callbacks.model_checkpoint\nevery_n_steps: 1\n");
    write_config("callbacks/two", "model_checkpoint: {save_last: no}\n");
    CHECK_OK(compose(&c, "trainer=after"));
    struct core *core = co_conf_core(c);
    CHECK(core->max_epochs == 3 && core->devices == 4, "the file lies over what it brings");
    co_conf_free(c);
    CHECK_OK(compose(&c, "trainer=before", "callbacks=[one,two]"));
    core = co_conf_core(c);
    CHECK(core->devices == 3 && core->on_nan == 1, "_self_ comes first");
    CHECK(core->every_n_steps == 1 && !core->save_last, "both files");
    co_conf_free(c);
    CHECK_OK(compose(&c, "debug=d"));
    core = co_conf_core(c);
    CHECK(core->devices == 4 && core->seed == 9, "override from a group's file");
    co_conf_free(c);
    CHECK_OK(compose(&c, "debug=d", "experiment=x"));
    core = co_conf_core(c);
    CHECK(core->devices == 3 && core->seed == 8, "the experiment wins");
    co_conf_free(c);
    CHECK_OK(compose(&c, "debug=d", "experiment=x", "trainer=ddp"));
    CHECK(((struct core *)co_conf_core(c))->devices == 0, "a word wins");
    co_conf_free(c);
}

TEST(defaults_lists_that_do_not_hold_are_refused_with_their_line)
{
    co_conf *c;
    write_config("trainer/a", "defaults:\n- b\n");
    write_config("trainer/b", "defaults:\n- a\n");
    write_config("trainer/c", "defaults:\n- nothing\n");
    write_config("trainer/d", "defaults:\n- /model: lm\n");
    write_config("trainer/e", "# @package a b..\ndevices: 1\n");
    write_config("trainer/f", "# @package ..\ndevices: 1\n");
    CHECK_FAILS(compose(&c, "trainer=a"), CO_EINPUT,
                "configs/trainer/b.yaml:2: the defaults lists come back to configs/trainer/a.yaml");
    CHECK_FAILS(compose(&c, "trainer=c"), CO_EINPUT, "configs/trainer/c.yaml:2: no trainer \"nothing\"");
    CHECK_FAILS(compose(&c, "trainer=d"), CO_EINPUT, "write \"- override /model: lm\"");
    CHECK_FAILS(compose(&c, "trainer=e"), CO_EINPUT, "unknown key \"a.devices\"");
    CHECK_FAILS(compose(&c, "trainer=f"), CO_EINPUT, "is neither _global_, _group_ nor a key");
    CHECK_FAILS(compose(&c, "trainer/sub=x"), CO_EINPUT, "no defaults list asks for the group");
    CHECK_FAILS(compose(&c, "model=[mlp,lm]"), CO_EINPUT, "no model \"[mlp,lm]\"");
}

static void check_jobs(const char *const *words, int n, const char *expected)
{
    co_conf_jobs *j;
    co_str s = {0};
    CHECK_OK(co_conf_sweep(&j, &spec, words, n));
    for (int k = 0; k < co_conf_jobs_count(j); k++) {
        for (int i = 0; i < n; i++)
            co_str_addf(&s, "%s%s", i ? " " : "", co_conf_jobs_words(j, k)[i]);
        co_str_add(&s, ";");
    }
    CHECK(!strcmp(co_str_text(&s), expected), "%s\nnot\n%s", co_str_text(&s), expected);
    co_str_fini(&s);
    co_conf_jobs_free(j);
}

TEST(a_sweep_is_the_product_of_its_words_with_the_last_fastest)
{
    static const char *const all[][2] = {
        {"seed=3", "seed=3;"},
        {"seed=1,2", "seed=1;seed=2;"},
        {"a=[1,2],[3]", "a=[1,2];a=[3];"},
        {"a='x y',\"1\",b", "a='x y';a='1';a=b;"},
        {"+a=choice(x,y)", "+a=x;+a=y;"},
        {"a=range(3)", "a=0;a=1;a=2;"},
        {"a=range(4,1,-1)", "a=4;a=3;a=2;"},
        {"a=range(0.1,0.5,0.1)", "a=0.1;a=0.2;a=0.3;a=0.4;"},
        {"a=range(start=1,stop=3)", "a=1;a=2;"},
        {"a=sort(3,1,2)", "a=1;a=2;a=3;"},
        {"a=int(1.5,2.5)", "a=1;a=2;"},
        {"a=tag(t,choice(x,y))", "a=x;a=y;"},
        {"a={b:1},{b:2}", "a={b:1};a={b:2};"},
        {"model=glob(*)", "model=cnn;model=linear;model=lm;model=mlp;"},
        {"model=glob(l*,exclude=lm)", "model=linear;"},
        {"model=glob([c*,m*])", "model=cnn;model=mlp;"},
        {"~seed", "~seed;"},
        {"a=", "a=;"},
        {"a='p,q'", "a='p,q';"},
    };
    co_conf_jobs *j = NULL;
    for (size_t i = 0; i < CO_COUNT(all); i++)
        check_jobs(&all[i][0], 1, all[i][1]);
    check_jobs((const char *const[]){"a=1,2", "c=z", "b=x,y"}, 3,
               "a=1 c=z b=x;a=1 c=z b=y;a=2 c=z b=x;a=2 c=z b=y;");
    CHECK_FAILS(co_conf_sweep(&j, &spec, (const char *const[]){"a=range(200)", "b=range(200)"}, 2), CO_EINPUT,
                "b=range(200) makes more than 10000 jobs");
    CHECK_FAILS(co_conf_sweep(&j, &spec, (const char *const[]){"seed=glob(*)"}, 1), CO_EINPUT, "seed is none");
    CHECK_FAILS(co_conf_sweep(&j, &spec, (const char *const[]){"model=glob(z*)"}, 1), CO_EINPUT,
                "no model matches");
    CHECK_FAILS(co_conf_sweep(&j, &spec, (const char *const[]){"a=range(1,2,0)"}, 1), CO_EINPUT, "not 0");
    CHECK_FAILS(co_conf_sweep(&j, &spec, (const char *const[]){"a=range(1,0)"}, 1), CO_EINPUT, "empty");
    CHECK_FAILS(co_conf_sweep(&j, &spec, (const char *const[]){"a=range(0,1e9)"}, 1), CO_EINPUT,
                "more than 4096");
    CHECK(!j, "out was written");
}

static co_err body(void *ctx)
{
    co_conf *c;
    co_conf_jobs *j;
    co_str s = {0};
    CO_TRY(co_conf_sweep(&j, &spec, (const char *const[]){"seed=1,2", "model=glob(*)"}, 2));
    co_conf_jobs_free(j);
    CO_TRY(compose(&c, "trainer=x", "run={dir:${oc.env:HOME}/${.x}}", "task_name=${oc.select:a,'b'}", "~seed",
                   "run.dir=${now:%Y}${oc.env:HOME}"));
    co_conf_yaml_all(c, &s);
    co_conf_free(c);
    co_err err = co_str_err(&s);
    co_str_fini(&s);
    return err;
}

TEST(every_failing_allocation_of_the_grammar_is_an_error_and_no_leak)
{
    write_config("trainer/x", "defaults: [ddp, override /model: lm]\ndevices: 2\n");
    test_each_alloc_fails(body, NULL);
}
