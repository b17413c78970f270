/* test_pairs_run.c -- translation from the command line: the guide's words, the tokenizers of a run, and a
 * run that is used with other ones. */
#include "cli/runs.h"

#include "base/str.h"

#define SMALL_PAIRS                                                                                          \
    "model.layers=1 model.heads=2 model.d_ff=32 model.d_model=16 data.batch_size=8 trainer.devices=1 "       \
    "logger=none "

/* en-it/pairs.tsv: 60 pairs of few words. */
static void make_pairs(void)
{
    static const char *const who[2][4] = {{"The cat", "The dog", "Tom", "Mary"},
                                          {"Il gatto", "Il cane", "Tom", "Mary"}};
    static const char *const does[2][3] = {{"sleeps", "eats", "sings"}, {"dorme", "mangia", "canta"}};
    static const char *const when[2][5] = {{"now", "today", "here", "well", "often"},
                                           {"adesso", "oggi", "qui", "bene", "spesso"}};
    co_str text = {0};

    for (int i = 0; i < 60; i++)
        co_str_addf(&text, "%s %s %s.\t%s %s %s.\n", who[0][i % 4], does[0][i / 4 % 3], when[0][i / 12],
                    who[1][i % 4], does[1][i / 4 % 3], when[1][i / 12]);
    CHECK_OK(co_fs_mkdirs("en-it"));
    CHECK_OK(co_fs_write_atomic("en-it/pairs.tsv", co_str_text(&text), text.len));
    co_str_fini(&text);
}

static void refuses(const char *line, const char *words)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == 2 && test_contains(r.out, words), "%s: exit status %d\n%s", line, r.status, r.out);
    free(r.out);
}

TEST(the_guide_s_words_train_a_transformer_and_the_run_keeps_its_tokenizers)
{
    make_pairs();
    succeeds("$COHORT train --standalone --nproc_per_node=1 train.py --num_epochs 1 --model_folder weights "
             "--lang_src en "
             "--lang_tgt it --seq_len 20 --d_model 16 model.layers=1 model.heads=2 model.d_ff=32 "
             "data.batch_size=8 "
             "trainer.max_steps=3 logger=none");
    CHECK(co_fs_exists("weights/tokenizer_en.json") && co_fs_exists("weights/tokenizer_it.json"),
          "no tokenizers");
    succeeds(
        "$COHORT train --model_folder weights --preload latest data.max_len=20 trainer.max_steps=5 "
        "logger=none "
        "data.batch_size=8 trainer.devices=1 model.layers=1 model.heads=2 model.d_ff=32 model.d_model=16");
    json_t *summary = json_of("%s/summary.json", "weights");
    CHECK(number_in(summary, "steps") == 5, "%lld steps", number_in(summary, "steps"));
    json_decref(summary);
    succeeds("$COHORT test ckpt_path=weights --split val");
}

TEST(a_run_that_is_used_with_another_vocabulary_is_refused_and_keeps_what_it_has)
{
    make_pairs();
    succeeds("$COHORT train experiment=en_it " SMALL_PAIRS "trainer.max_steps=2 run.dir=r");
    succeeds("sed 's/\"sleeps\"/\"snores\"/' r/tokenizer_en.json > other.json; sha256sum r/tokenizer_en.json "
             "> before");
    refuses("$COHORT train experiment=en_it " SMALL_PAIRS
            "trainer.max_steps=4 run.dir=r ckpt_path=auto data.tokenizer_src=other.json",
            "tokenizer_en.json of the data at hand has another vocabulary");
    refuses("$COHORT test ckpt_path=r data.tokenizer_src=other.json",
            "has another vocabulary than the run's");
    succeeds("sha256sum -c before");
    succeeds("cp r/tokenizer_en.json r/tokenizer_it.json .; $COHORT train experiment=en_it " SMALL_PAIRS
             "trainer.max_steps=4 run.dir=r ckpt_path=auto data.tokenizer_src=tokenizer_en.json "
             "data.tokenizer_tgt=tokenizer_it.json");
}

TEST(weights_of_a_run_with_another_vocabulary_are_refused_and_the_first_token_is_named)
{
    make_pairs();
    succeeds("$COHORT train experiment=en_it " SMALL_PAIRS "trainer.max_steps=2 run.dir=r");
    succeeds("sed 's/\"sleeps\"/\"snores\"/' r/tokenizer_en.json > other.json");
    refuses("$COHORT train experiment=en_it " SMALL_PAIRS
            "trainer.max_steps=2 run.dir=s weights=r data.tokenizer_src=other.json",
            "is \"sleeps\" in the run's and \"snores\" here (18 tokens there, 18 here)");
    succeeds("$COHORT train experiment=en_it " SMALL_PAIRS "trainer.max_steps=2 run.dir=t weights=r "
             "weights_skip='src_embed.*' data.tokenizer_src=other.json 2>&1 | grep 'only a warning'");
    refuses("$COHORT train experiment=en_it " SMALL_PAIRS
            "trainer.max_steps=4 run.dir=r ckpt_path=auto data.min_frequency=20",
            "has another vocabulary than the run's");
    test_run r = test_sh("$COHORT train experiment=en_it " SMALL_PAIRS
                         "trainer.max_steps=4 run.dir=u weights=r data.min_frequency=20");
    CHECK(r.status == 2 && test_contains(r.out, "18 tokens there") && !test_contains(r.out, "src_embed"),
          "%d %s", r.status, r.out);
    free(r.out);
}

TEST(preload_continues_a_run_with_its_own_configuration)
{
    make_pairs();
    succeeds("$COHORT train --model_folder f --batch_size 8 --d_model 16 --num_epochs 2 model.layers=1 "
             "model.heads=2 "
             "model.d_ff=32 trainer.devices=1 logger=none");
    succeeds(
        "$COHORT train --model_folder f --preload latest --num_epochs 3 2>&1 | grep 'configuration of f'");
    json_t *summary = json_of("%s/summary.json", "f");
    CHECK(number_in(summary, "steps") == 21, "%lld steps", number_in(summary, "steps"));
    json_decref(summary);
    succeeds("cp -r f g; n=$(ls f/checkpoints | grep -o 'epoch_.*' | tail -1); "
             "$COHORT train --model_folder g --preload ${n#epoch_} --num_epochs 4 2>&1 | grep 'configuration "
             "of g'");
    refuses("$COHORT train --model_folder f --preload 09 --num_epochs 5",
            "f has no checkpoint of epoch 09; it has epoch_");
}

TEST(training_from_italian_to_english_swaps_the_columns_and_says_so)
{
    make_pairs();
    succeeds("mv en-it/pairs.tsv en-it/pairs.en-it.tsv; $COHORT train train.py --lang_src it --lang_tgt en "
             "--model_folder X " SMALL_PAIRS
             "trainer.max_steps=1 2>&1 | grep 'it is column 2, en is column 1'");
    succeeds("grep -q gatto X/tokenizer_it.json && grep -q sleeps X/tokenizer_en.json");
}

TEST(experiment_en_it_finds_what_data_get_downloads)
{
    succeeds("mkdir -p data/opus_books-en-it; $COHORT train experiment=en_it --cfg job | grep "
             "'dir: .*data/opus_books-en-it'");
}

TEST(data_check_knows_pairs_and_says_what_is_wrong_with_them)
{
    make_pairs();
    succeeds("$COHORT data check en-it | grep 'data=pairs'");
    succeeds("$COHORT data stats en-it/pairs.tsv | grep 'vocabulary 18 of the source, 18 of the target'");
    succeeds("printf 'One\\tUno\\nTwo\\n' > bad.tsv; $COHORT data check bad.tsv > said; [ $? = 1 ] && grep "
             "'bad.tsv, line 2' "
             "said");
}
