/* Two hosts over loopback train each kind of model to the weights of one host: a transformer with dropout
 * on pairs of sentences, whose slices are cut by tokens; a vision transformer; row-sparse factors of
 * ratings. */
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "train/over.h"

static const char *const transformer[] = {"model=transformer",
                                          "data=pairs",
                                          "optim=adam",
                                          "data.dir=p.tsv",
                                          "data.min_frequency=1",
                                          "data.val_fraction=0.3",
                                          "data.test_fraction=0.1",
                                          "data.batch_size=16",
                                          "data.workers=0",
                                          "model.d_model=16",
                                          "model.heads=2",
                                          "model.layers=1",
                                          "model.d_ff=32",
                                          "model.dropout=0.2",
                                          "trainer.slices=8",
                                          "trainer.max_epochs=-1",
                                          "trainer.max_steps=12",
                                          "callbacks.model_checkpoint.enabled=false",
                                          NULL};

static const char *const vit[] = {"model=vit_tiny_patch4_32",
                                  "data=fake_images",
                                  "optim=adamw",
                                  "data.size=32",
                                  "data.n=64",
                                  "data.batch_size=16",
                                  "data.workers=0",
                                  "model.embed_dim=16",
                                  "model.depth=1",
                                  "model.num_heads=2",
                                  "trainer.slices=8",
                                  "trainer.max_epochs=-1",
                                  "trainer.max_steps=8",
                                  "callbacks.model_checkpoint.enabled=false",
                                  NULL};

static const char *const factors[] = {"model=factors",
                                      "data=fake_ratings",
                                      "optim=sparse_adam",
                                      "data.users=60",
                                      "data.items=40",
                                      "data.count=640",
                                      "data.batch_size=32",
                                      "data.workers=0",
                                      "model.width=8",
                                      "trainer.slices=16",
                                      "trainer.max_epochs=2",
                                      "callbacks.model_checkpoint.enabled=false",
                                      NULL};

static void make_pairs(void)
{
    FILE *f = fopen("p.tsv", "we");

    CHECK(f, "p.tsv: %m");
    for (int i = 0; i < 60; i++)
        fprintf(f, "a%d b c%d%s\tx%d y z%d%s\n", i % 7, i % 5, i % 3 ? " d e f" : "", i % 7, i % 5,
                i % 3 ? " u v" : "");
    CHECK(fclose(f) == 0, "p.tsv: %m");
}

static void same_as_one(const char *const *words)
{
    over_end end[OVER_HOSTS];
    over_scene scene = {.words = words, .hosts = 2, .ranks = 2};
    char sha[65];

    over_run(&scene, end);
    over_alone(words, sha);
    for (int h = 0; h < 2; h++) {
        CHECK(end[h].there && !end[h].err, "host %d: %s", h, end[h].why);
        CHECK(strcmp(end[h].sha, sha) == 0, "host %d: %.16s, not %.16s", h, end[h].sha, sha);
    }
    test_note("one hash: %.16s", sha);
}

TEST(two_hosts_train_a_transformer_with_dropout_to_the_weights_of_one)
{
    make_pairs();
    same_as_one(transformer);
}

TEST(two_hosts_train_a_vision_transformer_to_the_weights_of_one)
{
    same_as_one(vit);
}

TEST(two_hosts_train_row_sparse_factors_to_the_weights_of_one)
{
    same_as_one(factors);
}
