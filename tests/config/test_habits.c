/* A table of habits: what its rows make of words and of files, and that keys which exist go first. */
#include "config/spec.h"

static const co_conf_habit habits[] = {
    {"datamodule", NULL, CO_HABIT_BECOMES, "data"},
    {"net.name", NULL, CO_HABIT_BECOMES, "model"},
    {"model", "vit*", CO_HABIT_REFUSED, .says = "later"},
    {"opt.*", NULL, CO_HABIT_BECOMES, "optim.*"},
    {"trainer.max_epochs", "forever|-1", CO_HABIT_BECOMES, "trainer.max_epochs=1000", "that is long"},
    {"seed", NULL, CO_HABIT_REFUSED, .says = "a row without values is never asked about a key that exists"},
    {"trainer.benchmark a.*", NULL, CO_HABIT_DROPPED, .says = "not needed"},
    {"run.dir", "*", CO_HABIT_UNSETS, "task_name"},
    {0}};

static co_str told;

static void keep(const char *text)
{
    co_str_addf(&told, "%s\n", text);
}

static void (*note)(const char *text) = keep;

static co_err with_habits(co_conf **c, const char *const *words, int n)
{
    static co_conf_spec own;

    own = spec;
    own.habits = habits;
    own.note = note;
    co_str_clear(&told);
    return co_conf_compose(c, &own, words, n);
}
#define HABITS(c, ...)                                                                                       \
    with_habits(c, (const char *const[]){__VA_ARGS__},                                                       \
                (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

TEST(a_habit_becomes_a_key_a_choice_or_nothing_and_is_noted)
{
    co_conf *c;
    CHECK_OK(HABITS(&c, "net.name=lm", "opt.lr=0.5", "trainer.max_epochs=-1", "trainer.benchmark=true",
                    "a.b.c=1", "seed=7"));
    CHECK(!strcmp(co_conf_choice(c, "model"), "lm") && co_conf_row_of(c, "model") >= 0, "choice");
    struct core *core = co_conf_core(c);
    CHECK(core->max_epochs == 1000 && core->seed == 7, "values");
    CHECK(!strcmp(co_str_text(&told), "net.name=lm -> model=lm\nopt.lr=0.5 -> optim.lr=0.5\n"
                                      "trainer.max_epochs=-1 -> trainer.max_epochs=1000 (that is long)\n"
                                      "trainer.benchmark=true: not needed\na.b.c=1: not needed\n"),
          "%s", co_str_text(&told));
    co_conf_free(c);
    CHECK_OK(HABITS(&c, "trainer.max_epochs=3"));
    CHECK(((struct core *)co_conf_core(c))->max_epochs == 3 && !told.len, "a value of no row");
    co_conf_free(c);
    CHECK_FAILS(HABITS(&c, "net.name=vit_b"), CO_EINPUT, "model=vit_b: later");
    co_str_fini(&told);
}

TEST(a_habit_in_a_file_chooses_below_words_and_is_refused_with_its_line)
{
    co_conf *c;
    write_config("experiment/theirs", "net: {name: lm}\nopt:\n  lr: 0.25\n");
    write_config("experiment/bad", "seed: 1\nnet:\n  name: vit\n");
    CHECK_OK(HABITS(&c, "experiment=theirs"));
    CHECK(!strcmp(co_conf_choice(c, "model"), "lm"), "%s", co_conf_choice(c, "model"));
    co_conf_free(c);
    CHECK_OK(HABITS(&c, "experiment=theirs", "model=mlp"));
    CHECK(!strcmp(co_conf_choice(c, "model"), "mlp"), "%s", co_conf_choice(c, "model"));
    co_conf_free(c);
    CHECK_FAILS(HABITS(&c, "experiment=bad"), CO_EINPUT, "configs/experiment/bad.yaml:3: model=vit: later");
    co_str_fini(&told);
}

TEST(what_a_later_key_unsets_has_its_default_again_unless_it_comes_last)
{
    co_conf *c;
    write_config("experiment/x", "task_name: mine\n");
    CHECK_OK(HABITS(&c, "experiment=x", "run.dir=r"));
    CHECK(!strcmp(((struct core *)co_conf_core(c))->task_name, "train"), "not unset");
    co_conf_free(c);
    CHECK_OK(HABITS(&c, "run.dir=r", "task_name=mine"));
    CHECK(!strcmp(((struct core *)co_conf_core(c))->task_name, "mine"), "the last does not win");
    co_conf_free(c);
    co_str_fini(&told);
}

static void hear(const char *text) {}

static co_err each_allocation(void *ctx)
{
    co_conf *c;
    co_err err = HABITS(&c, "net.name=lm", "opt.lr=0.5", "trainer.benchmark=true", "run.dir=r");
    if (!err)
        co_conf_free(c);
    return err;
}

TEST(habits_survive_every_failed_allocation)
{
    note = hear;
    test_each_alloc_fails(each_allocation, NULL);
}

TEST(co_find_gives_the_first_path_that_is_there)
{
    co_conf *c;
    write_config("experiment/x", "run:\n  dir: ${co.find:data/set,configs}\n");
    CHECK_OK(compose(&c, "experiment=x"));
    CHECK(!strcmp(((struct core *)co_conf_core(c))->run_dir, "configs"), "second");
    co_conf_free(c);
    CHECK_OK(co_fs_mkdirs("data/set"));
    CHECK_OK(compose(&c, "experiment=x"));
    CHECK(!strcmp(((struct core *)co_conf_core(c))->run_dir, "data/set"), "first");
    co_conf_free(c);
    CHECK_OK(compose(&c, "run.dir=${co.find:no/a,no/b}"));
    CHECK(!strcmp(((struct core *)co_conf_core(c))->run_dir, "no/a"), "neither: the first is named");
    co_conf_free(c);
}
