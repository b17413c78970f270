/* linear.c -- one linear layer over all the numbers of a sample: logistic or linear regression. It is the
 * baseline for every other model. */
#include "nn/nn_int.h"

static const co_option options[] = {{0}};

static co_err check(const void *cfg, const co_io *io)
{
    return check_is_numbers("linear", io);
}

static co_node *build(const co_build *b, const void *cfg)
{
    return co_nn_linear(b->g, flatten(b), predictions(b->io), true, "fc");
}

const co_model_def linear_def = {
    .name = "linear",
    .help = "one linear layer",
    .options = options,
    .check = check,
    .build = build,
};
