/* test_tmodel.c -- the checkpoint that the translation guide's train.py saves
 * (tests/golden/make_tmodel.py): read as it is, with its tokenizers, it gives PyTorch's logits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "harness.h"
#include "train/evaluate_int.h"
#include "train/stage.h"

static json_t *golden_pairs(void)
{
    json_t *all = NULL;

    CHECK_OK(co_json_read(&all, test_repo("tests/golden/tmodel.json"), 1 << 20));
    json_t *pairs = json_incref(json_object_get(all, "pairs"));
    json_decref(all);
    return pairs;
}

static void write_pairs(const json_t *pairs)
{
    const json_t *pair;
    size_t i;
    FILE *f = fopen("p.tsv", "we");

    CHECK(f, "p.tsv: %m");
    json_array_foreach(pairs, i, pair)
        fprintf(f, "%s\t%s\n", co_json_str(pair, "source"), co_json_str(pair, "target"));
    CHECK(fclose(f) == 0, "p.tsv: %m");
}

static const json_t *logits_of(const json_t *pairs, const char *source)
{
    const json_t *pair;
    size_t i;

    json_array_foreach(pairs, i, pair) if (strcmp(co_json_str(pair, "source"), source) == 0)
    {
        return json_object_get(pair, "logits");
    }
    CHECK(false, "no pair %s", source);
    return NULL;
}

/* A key and a file of tests/golden/pth. */
static char *word(const char *key, const char *file)
{
    char *text = NULL;

    CHECK(asprintf(&text, "%s=%s/%s", key, test_repo("tests/golden/pth"), file) > 0, "no memory");
    return text;
}

/* The largest difference of a sample's logits from PyTorch's. */
static double worst_of(co_plan *plan, const exec_set *set, struct offline *offline, uint32_t id,
                       const json_t *pairs)
{
    const co_dataset *d = plan->data;
    co_slice_shape shape = co_slice_of(d, CO_SPLIT_VAL, &id, 1);
    co_slice_dst dst;
    co_str source = {0};
    double worst = 0;

    slice_dst(&set->e[0], offline->bases.input, &dst);
    set_rows(&offline->bases, shape);
    co_dataset_fill(d, CO_SPLIT_VAL, &id, shape, &(co_draw){0}, &dst);
    co_exec_run(set->e[0].exec, &offline->bases, &(co_run){0}, NULL);
    d->text(d, CO_SPLIT_VAL, id, CO_SIDE_SOURCE, &source);
    const json_t *want = logits_of(pairs, co_str_text(&source));
    CHECK((int)json_array_size(want) == shape.targets, "%zu rows, not %d", json_array_size(want),
          shape.targets);
    for (int row = 0; row < shape.targets; row++)
        for (int64_t c = 0; c < d->io.classes; c++) {
            double golden = json_number_value(json_array_get(json_array_get(want, (size_t)row), (size_t)c));
            double got = (double)((const float *)offline->bases.output)[row * d->io.classes + c];
            worst = fmax(worst, fabs(got - golden));
        }
    co_str_fini(&source);
    return worst;
}

TEST(a_checkpoint_of_the_translation_guide_gives_pytorchs_logits)
{
    char *weights = word("weights", "tmodel_09.pt"), *src = word("data.tokenizer_src", "tokenizer_en.json"),
         *tgt = word("data.tokenizer_tgt", "tokenizer_it.json");
    const char *words[] = {"model=transformer",
                           "data=pairs",
                           "optim=adam",
                           "data.dir=p.tsv",
                           "data.max_len=10",
                           src,
                           tgt,
                           weights,
                           "data.val_fraction=0.5",
                           "model.d_model=8",
                           "model.heads=2",
                           "model.layers=1",
                           "model.d_ff=12",
                           NULL};
    json_t *pairs = golden_pairs();
    struct offline offline = {0};
    exec_set set = {0};
    double worst = 0;
    co_plan *plan;
    stage g;

    write_pairs(pairs);
    stage_open(&g, words);
    CHECK_OK(co_plan_to_look(&plan, &g.spec));
    CHECK_OK(exec_set_add(&set, plan, (co_slice_shape){.n = 1, .tokens = 16, .targets = 16}, CO_MODE_PREDICT));
    CHECK_OK(offline_open(&offline, plan, &set));
    for (uint32_t id = 0; id < plan->data->count[CO_SPLIT_VAL]; id++)
        worst = fmax(worst, worst_of(plan, &set, &offline, id, pairs));
    CHECK(plan->data->count[CO_SPLIT_VAL] >= 2 && worst < 1e-5, "%u sentences, logits differ by %g",
          plan->data->count[CO_SPLIT_VAL], worst);
    test_note("%u sentences, logits differ by at most %.1e", plan->data->count[CO_SPLIT_VAL], worst);
    offline_close(&offline);
    exec_set_fini(&set);
    co_plan_free(plan);
    stage_close(&g);
    json_decref(pairs);
    free(weights);
    free(src);
    free(tgt);
}

/* ckpt import compares it with the model; a table of other numbers is of another model. */
TEST(ckpt_import_takes_a_checkpoint_of_the_translation_guide_and_refuses_other_positions)
{
    static const char model[] =
        "model=transformer data=pairs data.dir=p.tsv "
        "data.tokenizer_src=$REPO/tests/golden/pth/tokenizer_en.json "
        "data.tokenizer_tgt=$REPO/tests/golden/pth/tokenizer_it.json data.val_fraction=0.5 model.d_model=8 "
        "model.heads=2 model.layers=1 model.d_ff=12";
    json_t *pairs = golden_pairs();

    write_pairs(pairs);
    json_decref(pairs);
    test_run r =
        test_sh("$COHORT ckpt import $REPO/tests/golden/pth/tmodel_09.pt --to w.safetensors %s 2>&1", model);
    CHECK(r.status == 0 && test_contains(r.out, "from model_state_dict; names and shapes are the model's"),
          "%s", r.out);
    free(r.out);
    r = test_sh("echo 'Tom sings.' | $COHORT predict weights=w.safetensors %s", model);
    CHECK(r.status == 0 && strchr(r.out, '\n'), "%d %s", r.status, r.out);
    free(r.out);
    /* the first table begins with sin 0 = 0, cos 0 = 1: this 1 becomes 2 */
    r = test_sh("python3 - <<'EOF'\n"
                "import json, struct\n"
                "b = bytearray(open('w.safetensors', 'rb').read())\n"
                "n = struct.unpack('<Q', b[:8])[0]\n"
                "at = 8 + n + json.loads(b[8:8 + n])['src_pos.pe']['data_offsets'][0]\n"
                "b[at + 4:at + 8] = struct.pack('<f', 2)\n"
                "open('w.safetensors', 'wb').write(b)\n"
                "EOF\n");
    if (r.status == 127)
        test_skip("no python3, to change a number of the file");
    free(r.out);
    r = test_sh("echo 'Tom sings.' | $COHORT predict weights=w.safetensors %s 2>&1", model);
    CHECK(r.status == 2 && test_contains(r.out, "tensor src_pos.pe does not hold the sinusoids"), "%d %s",
          r.status, r.out);
    free(r.out);
    r = test_sh(
        "$COHORT ckpt import $REPO/tests/golden/pth/tmodel_09.pt --to v.safetensors %s model.d_ff=16 2>&1",
        model);
    CHECK(r.status == 2 && test_contains(r.out, "linear_1"), "%d %s", r.status, r.out);
    free(r.out);
}
