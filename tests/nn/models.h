/* models.h -- data descriptions and compiled models for the tests of this room. Defined in test_models.c. */
#ifndef TESTS_NN_MODELS_H
#define TESTS_NN_MODELS_H

#include "nn/nn.h"

extern const co_io nn_images, nn_rows, nn_prices, nn_text, nn_pairs, nn_ratings;

typedef struct nn_fit {
    const char *model; /* NULL: the end */
    const co_io *io;
} nn_fit;
extern const nn_fit nn_fits[]; /* every model with every kind of data that fits it */

/* A model's options with default values except for `key` (may be NULL); free with co_free. */
void *nn_cfg(const char *model, const char *key, const char *value);
co_slice_shape nn_shape(const co_io *io, int n); /* n samples; text: of up to 8 tokens */
co_exec *nn_compile(const char *model, const void *cfg, const co_io *io, co_slice_shape shape, co_mode mode);

#endif
