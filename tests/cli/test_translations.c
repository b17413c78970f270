/* test_translations.c -- what a training on pairs translates after its validations and at its test. */
#include "cli/runs.h"

#include <sys/inotify.h>
#include <unistd.h>

#define TRAIN                                                                                                \
    "$COHORT train data=pairs data.dir=p.tsv data.val_fraction=0.6 data.test_fraction=0.1 "                  \
    "data.min_frequency=1 model=transformer model.d_model=32 model.layers=1 model.heads=2 model.d_ff=64 "    \
    "optim=adam optim.lr=0.01 data.batch_size=4 seed=1 trainer.max_steps=14 trainer.eval_every=2 "           \
    "logger=none run.book=false console=plain "

static char *out_of(const char *command)
{
    test_run r = test_sh("%s", command);

    CHECK(r.status == 0, "%s: status %d: %s", command, r.status, r.out);
    return r.out;
}

/* The record's lines about translations, without their times. */
static char *told(const char *dir)
{
    test_run r = test_sh("grep -E '^.\"step\":[0-9]*,\"name\":\"(val|test)/(translation_|bleu|cer|wer|sent)' "
                         "%s/events.jsonl | sed 's/,\"t\":.*//'",
                         dir);
    return r.out;
}

TEST_WITHIN(translating_after_validations_moves_no_weight_and_its_text_is_the_same_for_any_ranks, 60)
{
    static const char *const ways[] = {
        "trainer.devices=3", "trainer.devices=2 trainer.threads=2",
        "trainer.devices=2 fault.phase=evaluation fault.kills=6 fault.mean_ms=1"};
    char want[65], got[65];

    /* a number and an adjective, in two languages and two orders: 36 pairs */
    free(out_of("for a in one:uno two:due three:tre four:quattro five:cinque six:sei; do "
                "for b in red:rosso green:verde blue:blu white:bianco black:nero big:grande; do "
                "printf '%s %s\\t%s %s\\n' ${a%:*} ${b%:*} ${b#*:} ${a#*:}; done; done > p.tsv"));
    free(out_of(TRAIN
                "callbacks.translations.every_n_val=0 callbacks.translations.test_sentences=0 run.dir=none "
                "trainer.devices=1 2>&1"));
    char *text = told("none");
    CHECK(*text == '\0', "nothing was to be translated: %s", text);
    free(text);
    sha_of_run(want, "none");
    free(out_of(TRAIN "run.dir=one trainer.devices=1 2>&1"));
    text = told("one");
    CHECK(test_contains(text, "{\"step\":14,\"name\":\"val/bleu\",") &&
              test_contains(text, "\"name\":\"val/sentences\",\"value\":21") &&
              test_contains(text, "\"name\":\"val/translation_3\",\"text\":\"       SOURCE: ") &&
              test_contains(text, "\"name\":\"test/translation_1\""),
          "%s", text);
    for (size_t i = 0; i < CO_COUNT(ways); i++) {
        char line[1200], dir[16];
        snprintf(line, sizeof line, TRAIN "run.dir=w%zu %s 2>&1", i, ways[i]);
        free(out_of(line));
        snprintf(dir, sizeof dir, "w%zu", i);
        char *other = told(dir);
        CHECK(strcmp(other, text) == 0, "%s: %s\nwanted: %s", ways[i], other, text);
        free(other);
        sha_of_run(got, dir);
        CHECK(strcmp(got, want) == 0, "%s: weights %s, not %s", ways[i], got, want);
    }
    free(text);
    sha_of_run(got, "one");
    CHECK(strcmp(got, want) == 0, "weights %s, not %s", got, want);
}

/* `cohort test` translates with the checkpoint, in one process. */
TEST(the_scores_of_a_run_s_last_validation_are_those_that_cohort_test_finds)
{
    double of_run = -1, of_test = -2;

    free(out_of("i=0; while [ $i -lt 40 ]; do echo \"a b c d $i\tw x y z $i\"; i=$((i+1)); done > p.tsv"));
    free(out_of(TRAIN
                "run.dir=r callbacks.translations.sentences=-1 callbacks.translations.every_n_val=100 2>&1"));
    json_t *summary = json_of("%s/summary.json", "r");
    CHECK(co_json_f64(json_object_get(summary, "metrics"), "val/bleu", &of_run), "no val/bleu");
    json_decref(summary);
    char *text = out_of("grep -c val/bleu r/events.jsonl");
    CHECK(strcmp(text, "2\n") == 0, "one line, after the last validation, and one in run_end: %s", text);
    free(text);
    text = out_of("$COHORT test ckpt_path=r/checkpoints/last --split val --json 2>/dev/null");
    json_t *found = json_loads(text, 0, NULL);
    CHECK(co_json_f64(found, "bleu", &of_test) && of_test == of_run, "%.17g, the run: %.17g", of_test, of_run);
    json_decref(found);
    free(text);
}

TEST(a_bleu_on_few_sentences_is_said_to_be_one_and_that_of_many_is_not)
{
    free(out_of("i=0; while [ $i -lt 360 ]; do echo \"a b c d $i\tw x y z $i\"; i=$((i+1)); done > p.tsv"));
    char *few = out_of(TRAIN "trainer.max_steps=2 run.dir=few run.book=true 2>&1");
    CHECK(test_contains(few, "of 32 sentences: few, so a rough figure") &&
              test_contains(few, "\n    SOURCE: a b c d ") && test_contains(few, "\n    TARGET: w x y z ") &&
              test_contains(few, "\n PREDICTED: "),
          "%s", few);
    free(few);
    char *book = out_of("cat few/book.md");
    CHECK(test_contains(book, "of 32 sentences: few, so a rough figure.") &&
              test_contains(book, "SOURCE: a b c d ") && !test_contains(book, "val/sentences"),
          "%s", book);
    free(book);
    char *many = out_of(TRAIN "trainer.max_steps=2 run.dir=many callbacks.translations.sentences=200 "
                              "callbacks.translations.test_sentences=0 2>&1");
    CHECK(test_contains(many, "of 200 sentences\n") && !test_contains(many, "rough"), "%s", many);
    free(many);
    char *said = out_of("$COHORT test ckpt_path=few --split val --limit 2 2>&1");
    CHECK(test_contains(said, "of 2 sentences: few, so a rough figure"), "%s", said);
    free(said);
}

/* How often a file was written or moved to this name since the watch began. */
static int times_written(int watch, const char *name)
{
    char events[8192] __attribute__((aligned(8)));
    int n = 0;
    ssize_t len;

    while ((len = read(watch, events, sizeof events)) > 0)
        for (char *at = events; at < events + len;) {
            struct inotify_event *e = (void *)at;
            n += e->len && strcmp(e->name, name) == 0;
            at += sizeof *e + e->len;
        }
    return n;
}

TEST(a_run_of_many_ranks_writes_each_tokenizer_file_once)
{
    free(out_of(
        "i=0; while [ $i -lt 40 ]; do echo \"a b c d $i\tw x y z $i\"; i=$((i+1)); done > p.tsv; mkdir r"));
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch >= 0 && inotify_add_watch(watch, "r", IN_CLOSE_WRITE | IN_MOVED_TO) >= 0, "inotify: %m");
    free(out_of(TRAIN "trainer.max_steps=2 trainer.devices=4 run.dir=r 2>&1"));
    int n = times_written(watch, "tokenizer_en.json");
    CHECK(n == 1, "tokenizer_en.json was written %d times", n);
    close(watch);
    free(out_of(TRAIN "trainer.max_steps=2 trainer.devices=1 run.dir=one 2>&1"));
    free(out_of(
        "cmp r/tokenizer_en.json one/tokenizer_en.json && cmp r/tokenizer_it.json one/tokenizer_it.json"));
}
