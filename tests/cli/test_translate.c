/* test_translate.c -- training on pairs, and translating with the checkpoint alone. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* A number and an adjective, in two languages and two orders: 36 pairs. */
#define PAIRS                                                                                                \
    "for a in one:uno two:due three:tre four:quattro five:cinque six:sei; do "                               \
    "for b in red:rosso green:verde blue:blu white:bianco black:nero big:grande; do "                        \
    "printf '%%s %%s\\t%%s %%s\\n' ${a%%:*} ${b%%:*} ${b#*:} ${a#*:}; done; done > p.tsv; "
#define TRAIN                                                                                                \
    "$COHORT train data=pairs data.dir=p.tsv data.val_fraction=0.1 data.min_frequency=1 model=transformer "  \
    "model.d_model=32 model.layers=1 model.heads=2 model.d_ff=64 optim=adam optim.lr=0.004 "                 \
    "data.batch_size=8 seed=1 "

static void says(const char *command, const char *want)
{
    test_run r = test_sh("%s", command);

    CHECK(r.status == 0 && strcmp(r.out, want) == 0, "%s: status %d, \"%s\"", command, r.status, r.out);
    free(r.out);
}

TEST_WITHIN(a_trained_run_translates_lines_without_its_data, 60)
{
    test_run r = test_sh(PAIRS TRAIN "model.dropout=0 trainer.max_epochs=40 run.dir=r console=quiet 2>&1");
    CHECK(r.status == 0, "train: %s", r.out);
    free(r.out);
    r = test_sh("$COHORT test ckpt_path=r --split val --json 2>/dev/null");
    CHECK(r.status == 0 && strstr(r.out, "\"bleu\"") && strstr(r.out, "\"sentences\""), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT predict ckpt_path=r --split val --limit 1 2>&1");
    CHECK(r.status == 0 && strstr(r.out, "SOURCE: ") && strstr(r.out, "PREDICTED: ") && strstr(r.out, "BLEU"),
          "%s", r.out);
    free(r.out);
    says("rm p.tsv; printf 'two red\\nfive black\\n' | $COHORT predict ckpt_path=r",
         "rosso due\nnero cinque\n");
    says("printf 'two red\\nfive black\\n' | $COHORT predict ckpt_path=r --beam 4",
         "rosso due\nnero cinque\n");
    says("printf 'six blue' | $COHORT predict ckpt_path=r --json", "{\"translation\":\"blu sei\"}\n");
    says("printf '' | $COHORT predict ckpt_path=r", "");
    r = test_sh("printf 'two red\\n\\377\\n' | $COHORT predict ckpt_path=r 2>&1");
    CHECK(r.status == 1 && strstr(r.out, "line 2: the text is not UTF-8") && strstr(r.out, "rosso due\n"),
          "%d %s", r.status, r.out);
    free(r.out);
    r = test_sh("printf x | $COHORT predict ckpt_path=r --beam 99 2>&1");
    CHECK(r.status == 2 && strstr(r.out, "--beam 99: a whole number from 1 to 32"), "%d %s", r.status, r.out);
    free(r.out);
}

/* Every second token of a target ends it, so a model of three steps has learned nothing but to end. */
TEST(empty_translations_of_a_model_that_is_hardly_trained_are_counted_once)
{
    test_run r =
        test_sh("for a in one:uno two:due three:tre four:quattro five:cinque six:sei seven:sette ten:dieci; "
                "do printf '%%s\t%%s\n' ${a%%:*} ${a#*:}; printf '%%s red\t%%s\n' ${a%%:*} ${a#*:}; done "
                "> p.tsv; " TRAIN "trainer.max_steps=3 run.dir=r console=quiet 2>&1");
    CHECK(r.status == 0, "train: %s", r.out);
    free(r.out);
    r = test_sh("printf 'two\n\nfive red\n' | $COHORT predict ckpt_path=r 2>said; cat said >&2");
    CHECK(r.status == 0 && strncmp(r.out, "\n\n\n", 3) == 0, "%d %s", r.status, r.out);
    const char *said =
        strstr(r.out, "2 of 2 translations are empty: the model ends a sentence at once, likely "
                      "because it is hardly trained\n");
    CHECK(said && !strstr(said + 40, "are empty"), "%s", r.out);
    free(r.out);
    static const char *const splits[] = {"predict", "test"};
    for (size_t i = 0; i < CO_COUNT(splits); i++) {
        r = test_sh("$COHORT %s ckpt_path=r --split val --json", splits[i]);
        CHECK(r.status == 0 && strstr(r.out, "1 of 1 translation is empty"), "%s: %d %s", splits[i], r.status,
              r.out);
        free(r.out);
    }
}

/* The weights' hash after 14 steps, trained in this way. */
static void hash(char sha[65], const char *how)
{
    test_run r = test_sh(
        TRAIN
        "model.dropout=0.2 trainer.max_steps=14 data.workers=0 %s console=quiet >/dev/null 2>&1; "
        "grep -o '\"weights_sha256\": *\"[0-9a-f]*\"' r/summary.json | grep -o '[0-9a-f]\\{64\\}'; rm -rf r",
        how);

    CHECK(r.status == 0 && strlen(r.out) >= 64, "%s: %s", how, r.out);
    snprintf(sha, 65, "%.64s", r.out);
    free(r.out);
}

TEST_WITHIN(the_transformer_with_dropout_has_one_hash_however_it_is_trained, 60)
{
    static const char *const ways[] = {"run.dir=r trainer.devices=2", "run.dir=r trainer.devices=4",
                                       "run.dir=r trainer.devices=1 trainer.threads=2",
                                       "run.dir=r trainer.devices=3 data.workers=2"};
    char want[65], got[65];

    test_run r = test_sh(PAIRS);
    free(r.out);
    hash(want, "run.dir=r trainer.devices=1");
    for (size_t i = 0; i < CO_COUNT(ways); i++) {
        hash(got, ways[i]);
        CHECK(strcmp(got, want) == 0, "%s: %s, not %s", ways[i], got, want);
    }
    r = test_sh(TRAIN "model.dropout=0.2 trainer.max_steps=6 run.dir=r console=quiet >/dev/null 2>&1");
    CHECK(r.status == 0, "the first part");
    free(r.out);
    hash(got, "run.dir=r ckpt_path=auto trainer.devices=2");
    CHECK(strcmp(got, want) == 0, "continued: %s, not %s", got, want);
}
