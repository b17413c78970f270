/* ops.c -- `cohort bench ops`: every kernel call of a slice's forward and backward pass: what it computes, how, what it
 * costs, and how near that is to what the machine can do. */
#include "bench/ops_int.h"

#include <string.h>

/* One slice of 16 pictures of 64x64 through resnet18, unless the words name another training. */
static const char *const usual[] = {"model=resnet18", "data=fake_images", "data.size=64",
                                    "data.batch_size=16", "trainer.slices=1"};
static const char *const always[] = {"trainer.devices=1", "trainer.threads=1", "console=quiet"};

void ops_help(co_str *out)
{
    co_str_add(out, "\n  cohort bench ops                                    resnet18, 16 pictures of 64x64\n"
                    "  cohort bench ops model=cnn data=digits              a slice of that training\n"
                    "  cohort bench ops experiment=cifar --rounds 30 --json\n\n"
                    "  The words are those of `cohort train`. GFLOP: as the operator's definition\n"
                    "  counts them; useful: the share (in %) without products with padding and masked\n"
                    "  keys; operators that are no products have neither. MB: inputs and outputs.\n"
                    "  fma %: useful FLOPs a second, of the FMA rate of one thread; an algorithm that\n"
                    "  needs fewer products than the definition may pass 100. mem %: bytes a second,\n"
                    "  of a copy's that no cache holds; tensors in a cache may pass 100. Both rates\n"
                    "  are measured in the same run. `2 ranks`: two processes compute at once.\n");
}

static bool names_training(const char *const *words)
{
    static const char *const keys[] = {"model=", "data=", "experiment="};

    for (; *words; words++)
        for (size_t i = 0; i < CO_COUNT(keys); i++)
            if (strncmp(*words, keys[i], strlen(keys[i])) == 0)
                return true;
    return false;
}

/* The settings of the line behind the usual ones, so that they win. */
static co_err choose_words(int *argc, char **argv, const char *words[BENCH_WORDS])
{
    const char *given[BENCH_WORDS];
    int n = 0;

    CO_TRY(bench_settings("ops", argc, argv, given, (int)(CO_COUNT(usual) + CO_COUNT(always))));
    const char *const *own = given + CO_COUNT(usual) + CO_COUNT(always);
    for (size_t i = 0; i < CO_COUNT(always); i++)
        words[n++] = always[i];
    for (size_t i = 0; i < CO_COUNT(usual) && !names_training(own); i++)
        words[n++] = usual[i];
    while (*own)
        words[n++] = *own++;
    words[n] = NULL;
    return CO_OK;
}

/* What every call is; the measuring processes make the same calls. */
static co_err fill(ops *o)
{
    co_calls *calls;

    CO_TRY(co_calls_open(&calls, o->plan));
    o->n = co_calls_count(calls);
    o->samples = co_calls_samples(calls);
    o->facts = co_array((size_t)o->n, sizeof *o->facts);
    o->row = co_array((size_t)o->n, sizeof *o->row);
    co_err err = o->facts && o->row ? CO_OK : CO_ENOMEM;
    for (int i = 0; i < o->n && !err; i++) {
        co_call_facts *f = &o->facts[i];
        *f = co_calls_facts(calls)[i];
        o->row[i] = (ops_row){.facts = f,
                              .call = i,
                              .calls = 1,
                              .flops = f->flops,
                              .useful = f->useful,
                              .bytes = (double)f->bytes,
                              .counted = f->counted};
    }
    co_calls_close(calls);
    return err;
}

static void title_of(co_str *out, const char *const *words)
{
    for (; *words; words++)
        co_str_addf(out, "%s%s", out->len ? " " : "", *words);
}

static co_err measure(ops *o, const co_bench_planner *planner, const char *const *words, bool json)
{
    void *held;
    co_str title = {0};

    CO_TRY(planner->open(&o->plan, &held, words));
    co_err err = fill(o);
    if (!err)
        err = ops_measure(o);
    title_of(&title, words + CO_COUNT(always));
    if (!err && json)
        ops_print_json(o);
    else if (!err)
        ops_print_text(o, co_str_text(&title));
    co_str_fini(&title);
    co_free(o->facts);
    co_free(o->row);
    planner->close(held);
    return err;
}

int bench_ops(int argc, char **argv, const co_bench_planner *planner)
{
    const char *words[BENCH_WORDS], *rounds = NULL;
    bool json = false;
    ops o = {.rounds = 15};

    co_err err = choose_words(&argc, argv, words);
    if (!err)
        err = co_flags_parse(
            "bench ops", argc, argv,
            (const co_flag[]){{"--rounds", "N", .value = &rounds}, {"--json", .on = &json}, {0}});
    if (!err)
        err = bench_number("ops", "--rounds", rounds, OPS_MOST_ROUNDS, &o.rounds);
    if (!err)
        err = measure(&o, planner, words, json);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}
