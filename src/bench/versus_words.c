/* versus_words.c -- the words of `cohort train` for our side of `cohort bench vs-torch`, and the text for
 * tasks that need some. A planner (bench.h) takes the same words, to say what a training is without running
 * it. */
#include "bench/versus_int.h"

#include "base/fs.h"
#include "config/config.h"

/* "key=value" for a number, in the next free text of w. */
static void add_number(versus_words *w, int *n, int *texts, const char *key, int value)
{
    CO_ASSERT(*texts < (int)CO_COUNT(w->number), "there is a text for each number");
    char *text = w->number[(*texts)++];
    snprintf(text, sizeof w->number[0], "%s=%d", key, value);
    w->word[(*n)++] = text;
}

co_err versus_words_init(versus_words *w, const versus *v, int steps, const char *const *more)
{
    static const char *const always[] = {"trainer.max_epochs=100000", "trainer.eval_every=0", "test=false",
                                         "console=quiet", "callbacks.model_checkpoint.enabled=false"};
    int n = 0, texts = 0;

    *w = (versus_words){0};
    if (v->data && !(w->data = co_conf_word(v->task->text ? "data.path" : "data.dir", v->data)))
        return CO_ENOMEM;
    for (int i = 0; v->task->words[i]; i++)
        w->word[n++] = v->task->words[i];
    add_number(w, &n, &texts, "data.batch_size", v->batch);
    add_number(w, &n, &texts, "trainer.max_steps", steps);
    if (v->ranks)
        add_number(w, &n, &texts, "trainer.devices", v->ranks);
    if (v->threads)
        add_number(w, &n, &texts, "trainer.threads", v->threads);
    if (v->task->size_key)
        add_number(w, &n, &texts, v->task->size_key, v->size);
    if (w->data)
        w->word[n++] = w->data;
    for (size_t i = 0; i < CO_COUNT(always); i++)
        w->word[n++] = always[i];
    for (int i = 0; more && more[i]; i++)
        w->word[n++] = more[i];
    CO_ASSERT(n < VERSUS_WORDS, "there is room for all words");
    return CO_OK;
}

void versus_words_fini(versus_words *w)
{
    co_free(w->data);
    w->data = NULL;
}

/* --- text ----------------------------------------------------------------------------------------------- */
/* A line is `size` tokens: its characters, of 64 kinds at random, and the newline. */
static void add_line(co_str *out, int size, uint64_t *state)
{
    for (int i = 0; i < size - 1; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        char c = (char)('0' + (*state >> 58));
        co_str_addn(out, &c, 1);
    }
    co_str_add(out, "\n");
}

enum { TEXT_MOST = 256 << 20 }; /* bytes */

co_err versus_make_text(versus *v)
{
    int64_t spare = 2 + v->batch; /* two lines to validate and to test on; no step gets a short batch */
    int64_t lines = (int64_t)v->batch * (v->steps + v->warmup) + spare;
    uint64_t state = 1;
    co_str text = {0};

    if (lines > TEXT_MOST / v->size)
        return co_fail(
            CO_EINPUT,
            "bench vs-torch: %d steps of %d sequences of %d tokens: the text for them would be larger "
            "than 256 MiB; choose fewer --steps",
            v->steps, v->batch, v->size);
    for (int64_t i = 0; i < lines; i++)
        add_line(&text, v->size, &state);
    snprintf(v->text, sizeof v->text, "%s/text", v->root);
    co_err err = co_str_err(&text);
    if (!err)
        err = co_fs_write_lightly(v->text, co_str_text(&text), text.len);
    co_str_fini(&text);
    v->data = v->text;
    return err;
}
