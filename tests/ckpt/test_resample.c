/* Position embeddings for pictures of another size: timm's values (tests/golden/make_vit.py), what is not
 * resampled, and the whole way through the program. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "ckpt/ckpt.h"
#include "tensor/safetensors.h"

static int at(const json_t *list, size_t i)
{
    return (int)json_integer_value(json_array_get(list, i));
}

/* pos_embed [1, rows, width] with words of the seed, alone in a file. */
static void write_file(const char *path, int64_t rows, int64_t width, uint64_t seed)
{
    co_st_tensor t = {
        .name = "pos_embed", .dtype = CO_F32, .dtype_name = "F32", .shape = CO_SHAPE(1, rows, width)};
    float *value = co_array((size_t)(rows * width), sizeof *value);
    co_st_writer *w;
    char hex[65];
    uint64_t len;

    for (int64_t i = 0; i < rows * width; i++)
        value[i] = test_unit(&seed);
    remove(path);
    CHECK_OK(co_st_create(&w, path, &t, 1, NULL));
    CHECK_OK(co_st_write(w, value, (size_t)(rows * width) * sizeof *value));
    CHECK_OK(co_st_finish(w, hex, &len));
    co_free(value);
}

static void make_layout(co_layout *l, int64_t h, int64_t w, int64_t width, bool grid)
{
    co_entry e = {
        .name = "pos_embed", .kind = CO_KIND_PARAM, .dtype = CO_F32, .shape = CO_SHAPE(1, 1 + h * w, width)};

    e.grid[0] = grid ? h : 0;
    e.grid[1] = grid ? w : 0;
    co_layout_init(l);
    CHECK_OK(co_layout_add(l, &e));
    co_layout_close(l);
}

static double worst_of(const json_t *c)
{
    const json_t *old = json_object_get(c, "old"), *new = json_object_get(c, "new"), *v;
    int side = at(old, 0), width = (int)json_integer_value(json_object_get(c, "width"));
    double worst = 0;
    co_layout l;
    size_t i;

    write_file("w.safetensors", 1 + side * side, width,
               (uint64_t)json_integer_value(json_object_get(c, "seed")));
    make_layout(&l, at(new, 0), at(new, 1), width, true);
    float *state = co_array(l.count, sizeof *state);
    CHECK_OK(co_weights_load("w.safetensors", &l, NULL, state));
    json_array_foreach(json_object_get(c, "values"), i, v) worst =
        fmax(worst, fabs((double)state[i] - json_number_value(v)));
    CHECK(i == l.entry[0].count, "%zu values", i);
    co_free(state);
    co_layout_fini(&l);
    return worst;
}

TEST(position_embeddings_are_resampled_as_timm_does_it)
{
    json_t *all, *c;
    size_t i;

    CHECK_OK(co_json_read(&all, test_repo("tests/golden/vit.json"), 1 << 20));
    json_array_foreach(json_object_get(all, "resample"), i, c)
    {
        double worst = worst_of(c);
        CHECK(worst <= 1e-6, "case %zu differs by %g", i, worst);
    }
    CHECK(i == 4, "%zu cases", i);
    json_decref(all);
}

TEST(only_a_position_embedding_of_square_pictures_and_the_same_width_is_resampled)
{
    char note[160];
    co_layout l;

    make_layout(&l, 3, 3, 4, true);
    write_file("w.safetensors", 1 + 4 * 4, 4, 1);
    CHECK_OK(co_weights_load("w.safetensors", &l, NULL, NULL));
    CHECK_OK(co_weights_note(note, sizeof note, "w.safetensors", &l, NULL));
    CHECK(test_contains(note, "pos_embed is resampled from 4x4 to 3x3 patches"), "%s", note);
    CHECK_OK(co_weights_note(note, sizeof note, "w.safetensors", &l, "pos_embed"));
    CHECK(!note[0], "%s", note);
    write_file("w.safetensors", 1 + 3 * 3, 4, 1);
    CHECK_OK(co_weights_note(note, sizeof note, "w.safetensors", &l, NULL));
    CHECK(!note[0], "%s", note);
    write_file("w.safetensors", 1 + 15, 4, 1);
    CHECK_FAILS(co_weights_load("w.safetensors", &l, NULL, NULL), CO_EINPUT,
                "tensor pos_embed is [1,16,4] there, [1,10,4] here; weights_skip=\"pos_embed\" lets it");
    write_file("w.safetensors", 1 + 16, 5, 1);
    CHECK_FAILS(co_weights_load("w.safetensors", &l, NULL, NULL), CO_EINPUT, "[1,17,5] there");
    write_file("w.safetensors", 1, 4, 1);
    CHECK_FAILS(co_weights_load("w.safetensors", &l, NULL, NULL), CO_EINPUT, "[1,1,4] there");
    co_layout_fini(&l);
    make_layout(&l, 3, 3, 4, false);
    write_file("w.safetensors", 1 + 16, 4, 1);
    CHECK_FAILS(co_weights_load("w.safetensors", &l, NULL, NULL), CO_EINPUT, "[1,17,4] there, [1,10,4] here");
    co_layout_fini(&l);
}

static co_err load(void *ctx)
{
    float state[64];
    return co_weights_load("w.safetensors", ctx, NULL, state);
}

TEST(resampling_without_memory_says_so_and_leaks_nothing)
{
    co_layout l;

    make_layout(&l, 3, 3, 4, true);
    write_file("w.safetensors", 1 + 4 * 4, 4, 1);
    test_each_alloc_fails(load, &l);
    co_layout_fini(&l);
}

#define VIT                                                                                                  \
    "data=fake_images data.n=64 model=vit_tiny_patch4_32 model.embed_dim=12 model.depth=1 "                  \
    "data.batch_size=8 "
TEST(a_vit_starts_from_the_weights_of_one_for_other_pictures_and_says_so)
{
    test_run r =
        test_sh("set -e; $COHORT train " VIT "data.size=32 trainer.max_steps=1 console=quiet run.dir=a;"
                "$COHORT ckpt export a --out m.safetensors;"
                "$COHORT train " VIT "data.size=20 trainer.max_steps=1 run.dir=b weights=m.safetensors");

    CHECK(r.status == 0 && test_contains(r.out, "weights: pos_embed is resampled from 8x8 to 5x5 patches"),
          "%d %s", r.status, r.out);
    free(r.out);
}
