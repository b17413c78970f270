/* nn_int.h -- the models that the table lists. */
#ifndef CO_NN_NN_INT_H
#define CO_NN_NN_INT_H

#include "nn/nn.h"

enum { NAME_MAX_LEN = 128 }; /* of a module or parameter, with its end */

extern const co_model_def linear_def, mlp_def, cnn_def, lm_def, transformer_def, factors_def, neumf_def,
    fastnet_def;
extern const co_model_def resnet_defs[5]; /* 18, 34, 50, 101, 152 layers */
extern const co_model_def vit_defs[8];    /* in the order of models/vit.c */

/* For models that need numbers: if the data is text, CO_EINPUT with the name of a model that fits. */
co_err check_is_numbers(const char *model, const co_io *io);
/* For models that check their input by its shape: CO_EINPUT if the data is ratings. */
co_err check_is_not_ratings(const char *model, const co_io *io);
/* For models of ratings: CO_EINPUT if the data is something else. */
co_err check_is_ratings(const char *model, const co_io *io);
/* For models with attention: CO_EINPUT unless model.heads divides model.d_model. */
co_err check_heads(int64_t d_model, int64_t heads);
int64_t predictions(const co_io *io); /* CLASSIFY, LM: classes; REGRESS: y_width */

/* [n, x...] -> [n, features] */
co_node *flatten(const co_build *b);

#endif
