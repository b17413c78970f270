/* Weights in and out: a plain safetensors file fits wholly or is refused by its first tensor that does
 * not; nothing is converted, guessed or half-loaded. */
#include "ckpt/small.h"

#include <stdio.h>

#include "tensor/safetensors.h"

/* A file with the small model's tensors, changed: one left out (its name), one under another name or dtype
 * or shape. */
struct change {
    const char *leave_out, *at, *name, *dtype;
    co_shape shape;
};

static void write_file(const char *path, const struct small *s, const struct change *c)
{
    co_st_tensor t[8] = {0};
    char zeros[1024] = {0}, hex[65];
    co_st_writer *w;
    uint64_t len;
    int n = 0, from[8];

    for (int i = 0; i < s->l.n; i++) {
        const co_entry *e = &s->l.entry[i];
        bool here = c->at && strcmp(c->at, e->name) == 0;
        if (c->leave_out && strcmp(c->leave_out, e->name) == 0)
            continue;
        t[n] = (co_st_tensor){.name = here && c->name ? c->name : e->name,
                              .dtype = e->dtype,
                              .shape = here && c->shape.nd ? c->shape : e->shape};
        if (here && c->dtype)
            CHECK(co_dtype_parse(&t[n].dtype, c->dtype), "%s", c->dtype);
        snprintf(t[n].dtype_name, sizeof t[n].dtype_name, "%s", co_dtype_name(t[n].dtype));
        from[n++] = here ? -1 : i;
    }
    CHECK_OK(co_st_create(&w, path, t, n, NULL));
    for (int i = 0; i < n; i++) {
        size_t bytes = 0;
        CHECK(co_shape_bytes(&bytes, &t[i].shape, t[i].dtype) && bytes <= sizeof zeros, "%zu", bytes);
        CHECK_OK(co_st_write(
            w, from[i] < 0 ? (void *)zeros : (void *)(s->part[0] + s->l.entry[from[i]].offset), bytes));
    }
    CHECK_OK(co_st_finish(w, hex, &len));
}

/* Refused with these words, and the state is as it was. */
static void refused(struct small *s, const struct change *c, const char *skip, const char *words)
{
    remove("w.safetensors");
    write_file("w.safetensors", s, c);
    float *state = co_array(s->l.count, sizeof *state);
    memset(state, 0x5a, s->l.count * 4);
    CHECK_FAILS(co_weights_load("w.safetensors", &s->l, skip, NULL), CO_EINPUT, words);
    CHECK_FAILS(co_weights_load("w.safetensors", &s->l, skip, state), CO_EINPUT, words);
    for (size_t i = 0; i < s->l.count * 4; i++)
        CHECK(((unsigned char *)state)[i] == 0x5a, "the state was touched");
    co_free(state);
}

/* Files of old versions of PyTorch have no num_batches_tracked, and PyTorch takes them. */
TEST(weights_without_a_batch_norms_counter_are_taken_and_it_keeps_its_value)
{
    struct small s;
    int64_t steps = 3;

    small_init(&s, 4);
    write_file("w.safetensors", &s, &(struct change){.leave_out = "bn.num_batches_tracked"});
    float *state = co_array(s.l.count, sizeof *state);
    float *counter = state + co_layout_find(&s.l, "bn.num_batches_tracked")->offset;
    memcpy(counter, &steps, sizeof steps);
    CHECK_OK(co_weights_load("w.safetensors", &s.l, NULL, state));
    memcpy(&steps, counter, sizeof steps);
    CHECK(steps == 3, "%lld", (long long)steps);
    size_t at = co_layout_find(&s.l, "fc1.weight")->offset;
    CHECK(memcmp(state + at, s.part[0] + at, 4 * sizeof *state) == 0, "other weights");
    co_free(state);
    small_fini(&s);
}

TEST(weights_that_do_not_fit_are_refused_by_the_first_tensor)
{
    struct small s;
    small_init(&s, 4);
    refused(&s, &(struct change){.leave_out = "fc1.bias"}, NULL, "tensor fc1.bias of the model is not in it");
    refused(&s, &(struct change){.at = "scale", .name = "zebra"}, NULL,
            "tensor scale of the model is not in it");
    refused(&s, &(struct change){.at = "scale", .name = "alpha"}, NULL,
            "tensor alpha is in it, but not in the model");
    refused(&s, &(struct change){.at = "fc1.weight", .shape = CO_SHAPE(4, 6)}, NULL,
            "tensor fc1.weight is [4,6] there, [4,5] here; weights_skip=\"fc1.*\" lets it start anew");
    refused(&s, &(struct change){.at = "fc1.weight", .shape = CO_SHAPE(4, 6), .leave_out = "scale"}, NULL,
            "tensor fc1.weight is [4,6] there, [4,5] here");
    CHECK(co_weights_load("w.safetensors", &s.l, NULL, NULL) == CO_EINPUT &&
              !test_contains(co_errmsg(), "weights_skip"),
          "it would not help: %s", co_errmsg());
    refused(&s, &(struct change){.at = "bn.num_batches_tracked", .dtype = "I32"}, NULL,
            "tensor bn.num_batches_tracked is I32 there, I64 here");
    refused(&s, &(struct change){0}, "head.*", "weights_skip: no tensor is called \"head.*\"");
    refused(&s, &(struct change){.leave_out = "scale"}, "fc1.*", "tensor scale of the model is not in it");
    small_fini(&s);
}

/* A file of one tensor w [4] of any dtype, by hand: our writer has only those that we compute with. */
static void write_raw(const char *path, const char *dtype, size_t size)
{
    char header[128], zeros[32] = {0};
    FILE *f = fopen(path, "w");

    CHECK(f, "%m");
    int n = snprintf(header, sizeof header,
                     "{\"w\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,%zu]}}", dtype, 4 * size);
    uint64_t len = (uint64_t)n;
    fwrite(&len, 8, 1, f);
    fwrite(header, 1, (size_t)n, f);
    fwrite(zeros, size, 4, f);
    CHECK(fclose(f) == 0, "%m");
}

TEST(weights_of_another_precision_are_refused_not_converted)
{
    static const struct {
        const char *dtype;
        size_t size;
    } others[] = {{"F16", 2}, {"BF16", 2}, {"F64", 8}};
    char words[128];
    co_layout l;

    co_layout_init(&l);
    small_add(&l, "w", CO_KIND_PARAM, CO_SHAPE(4));
    co_layout_close(&l);
    for (size_t i = 0; i < CO_COUNT(others); i++) {
        write_raw("w.safetensors", others[i].dtype, others[i].size);
        snprintf(words, sizeof words, "tensor w is %s there, F32 here: nothing is converted in silence",
                 others[i].dtype);
        CHECK_FAILS(co_weights_load("w.safetensors", &l, NULL, NULL), CO_EINPUT, words);
    }
    write_raw("w.safetensors", "F32", 4);
    CHECK_OK(co_weights_load("w.safetensors", &l, NULL, NULL));
    co_layout_fini(&l);
}

TEST(weights_load_whole_or_but_for_what_is_skipped)
{
    struct small s;
    small_init(&s, 4);
    float *state = co_array(s.l.count, sizeof *state);
    write_file("all.safetensors", &s, &(struct change){0});
    CHECK_OK(co_weights_load("all.safetensors", &s.l, NULL, state));
    CHECK(memcmp(state, s.part[0], s.l.count * 4) == 0, "the state differs from what was written");

    /* another head: what matches keeps what it has, on both sides */
    write_file("head.safetensors", &s, &(struct change){.at = "fc1.weight", .shape = CO_SHAPE(7, 5)});
    memset(state, 0, s.l.count * 4);
    CHECK_OK(co_weights_load("head.safetensors", &s.l, "fc1.*", state));
    for (int i = 0; i < s.l.n; i++) {
        const co_entry *e = &s.l.entry[i];
        bool skipped = strncmp(e->name, "fc1.", 4) == 0, zero = true;
        for (size_t k = 0; k < e->count; k++)
            zero = zero && state[e->offset + k] == 0;
        CHECK(skipped ? zero : memcmp(state + e->offset, s.part[0] + e->offset, e->count * 4) == 0, "%s",
              e->name);
    }
    co_free(state);
    small_fini(&s);
}

TEST(a_head_of_another_size_or_without_tensors_is_to_start_anew)
{
    struct small s; /* its last parameter, scale, has no layer: one with a head is made of it */
    co_layout l;
    co_new_head head;

    small_init(&s, 4);
    co_layout_init(&l);
    small_add(&l, "scale", CO_KIND_PARAM, CO_SCALAR);
    small_add(&l, "fc1.weight", CO_KIND_PARAM, CO_SHAPE(3, 5));
    small_add(&l, "fc1.bias", CO_KIND_PARAM, CO_SHAPE(3));
    small_add(&l, "bn.running_mean", CO_KIND_STAT, CO_SHAPE(4));
    co_layout_close(&l);
    write_file("a.safetensors", &s, &(struct change){0});
    CHECK_OK(co_weights_head("a.safetensors", &l, &head));
    CHECK(strcmp(head.skip, "fc1.*") == 0 && strcmp(head.there, "[4,5]") == 0 && strcmp(head.here, "[3,5]") == 0,
          "%s %s %s", head.skip, head.there, head.here);
    /* other inputs are another model, not another head */
    write_file("b.safetensors", &s, &(struct change){.at = "fc1.weight", .shape = CO_SHAPE(4, 6)});
    CHECK_OK(co_weights_head("b.safetensors", &s.l, &head));
    CHECK(head.skip[0] == '\0', "%s", head.skip);
    /* the file may have no head at all */
    co_layout_fini(&l);
    co_layout_init(&l);
    small_add(&l, "scale", CO_KIND_PARAM, CO_SCALAR);
    small_add(&l, "head.weight", CO_KIND_PARAM, CO_SHAPE(3, 5));
    co_layout_close(&l);
    CHECK_OK(co_weights_head("a.safetensors", &l, &head));
    CHECK(strcmp(head.skip, "head.*") == 0 && head.there[0] == '\0', "%s %s", head.skip, head.there);
    co_layout_fini(&l);
    small_fini(&s);
}

TEST(what_is_no_safetensors_file_is_refused_with_what_to_do)
{
    struct small s;
    small_init(&s, 4);
    test_run r = test_sh("printf 'PK\\003\\004 and more bytes of it' > new.pt; mkdir empty;"
                         "printf '\\200\\002 and more bytes' > old.pt; echo text of some length > text");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    CHECK_FAILS(co_weights_load("new.pt", &s.l, NULL, NULL), CO_EINPUT, "new.pt: not a whole zip archive");
    CHECK_FAILS(co_weights_load("old.pt", &s.l, NULL, NULL), CO_EINPUT, "torch.save(torch.load(\"old.pt\"");
    CHECK_FAILS(co_weights_load("text", &s.l, NULL, NULL), CO_EINPUT, "is it a safetensors file?");
    CHECK_FAILS(co_weights_load("empty", &s.l, NULL, NULL), CO_EINPUT, "a folder without model.safetensors");
    CHECK_FAILS(co_weights_load("nowhere", &s.l, NULL, NULL), CO_EINPUT, "nowhere: there is no such file");
    small_fini(&s);
}

TEST(exported_weights_load_again_bit_for_bit)
{
    struct small s;
    small_init(&s, 4);
    float *state = co_array(s.l.count, sizeof *state);
    CHECK_OK(small_save(&s, "r", "x", 1));
    CHECK_OK(co_weights_export("r/x", "out.safetensors", false));
    CHECK_OK(co_weights_load("out.safetensors", &s.l, NULL, state));
    CHECK(memcmp(state, s.part[0], s.l.count * 4) == 0, "exported weights differ");
    memset(state, 0, s.l.count * 4);
    CHECK_OK(co_weights_load("r/x", &s.l, NULL, state)); /* the checkpoint's folder itself */
    CHECK(memcmp(state, s.part[0], s.l.count * 4) == 0, "weights from the folder differ");
    CHECK_FAILS(co_weights_export("r/x", "out.safetensors", false), CO_EIO, "out.safetensors");
    CHECK_FAILS(co_weights_export("r", "other.safetensors", false), CO_EFORMAT, "manifest.json is missing");
    co_free(state);
    small_fini(&s);
}

/* Through the program: trained, exported, taken as first weights, the same test; a new head only on
 * request. */
TEST(a_run_starts_from_exported_weights)
{
    test_run r =
        test_sh("set -e; $COHORT train data=digits model=cnn model.width=4 trainer.max_steps=4 console=quiet "
                "run.dir=a >/dev/null;"
                "$COHORT ckpt export a --out m.safetensors;"
                "$COHORT test ckpt_path=a > one 2>/dev/null;"
                "$COHORT test weights=m.safetensors data=digits model=cnn model.width=4 > two 2>/dev/null; "
                "cmp one two;"
                "$COHORT predict weights=m.safetensors data=digits model=cnn model.width=4 --limit 2 "
                "--logits --json |"
                " grep -c logits;"
                "set +e; L='data=fake_images data.size=8 data.planes=1 data.classes=3 model=cnn "
                "model.width=4 trainer.max_steps=2"
                " console=quiet run.dir=b weights=m.safetensors';"
                "$COHORT train $L; echo status $?; $COHORT train $L weights_skip='fc.*'; echo status $?");

    CHECK(test_contains(r.out, "\n2\n"), "%s", r.out);
    CHECK(test_contains(r.out, "tensor fc.bias is [10] there, [3] here"), "%s", r.out);
    CHECK(test_contains(r.out, "status 2\n") && test_contains(r.out, "status 0\n"), "%s", r.out);
    free(r.out);
}

/* Pretrained weights: the head of another size is replaced, everything else is the file's; what differs
 * otherwise is refused. */
TEST(pretrained_weights_replace_a_head_of_another_size_and_say_so)
{
    test_run r = test_sh(
        "set -e; $COHORT train data=digits model=cnn model.width=4 trainer.max_steps=4 console=quiet "
        "run.dir=a >/dev/null; $COHORT ckpt export a --out m.safetensors; set +e;"
        "L='model=cnn model.width=4 trainer.max_steps=1 optim.lr=0 console=plain "
        "model.pretrained=m.safetensors';"
        "F='data=fake_images data.size=8 data.planes=1 data.classes=3';"
        "$COHORT train $L $F run.dir=b; echo status $?; $COHORT train $L data=digits run.dir=c; echo status "
        "$?;"
        "$COHORT train $L $F run.dir=d model.width=8; echo status $?;"
        "$COHORT train $L $F weights=m.safetensors; $COHORT train $L $F model.pretrained=none.pth;"
        "$COHORT train $L $F model.pretrained=true; $COHORT train $L $F model.pretrained=false run.dir=e > "
        "e.txt;"
        "grep -c starts.anew e.txt;"
        "echo end");
    static const char *const wanted[] = {
        "weights   m.safetensors; fc.* starts anew: [10,8] there, [3,8] here",
        "status 0",
        "weights   m.safetensors\n",
        "tensor bn1.bias is [4] there, [8] here",
        "weights=m.safetensors and model.pretrained=m.safetensors both say",
        "model.pretrained=none.pth: No such file",
        "model.pretrained=true: no weights of model=cnn are known here",
        "\n0\nend"};

    test_has_all(r.out, wanted, CO_COUNT(wanted));
    free(r.out);
}
