/* predict.h -- evaluates or predicts with a checkpoint's weights, in this process, without ranks.
 *
 *     co_plan *plan;
 *     co_eval_result result;
 *     char sha256[65];
 *     CO_TRY(co_plan_to_look(&plan, &spec));                              // spec.resume names the checkpoint
 *     co_err err = co_evaluate(plan, CO_SPLIT_VAL, &result, sha256);
 *     co_plan_free(plan);
 */
#ifndef CO_TRAIN_PREDICT_H
#define CO_TRAIN_PREDICT_H

#include "train/train.h"

/* A plan that serves only what needs no ranks: this header, translate.h and recommend.h. It trains nothing,
 * so batch, seed and kernels may differ from the checkpoint's. */
co_err co_plan_to_look(co_plan **out, const co_train_spec *spec);
co_err co_plan_check_look(const co_train_spec *spec, unsigned sure, co_mistakes *mistakes);

/* Evaluates CO_SPLIT_VAL or CO_SPLIT_TEST. Gives the same values for a state as the run's own evaluation
 * did. */
co_err co_evaluate(co_plan *p, co_split split, co_eval_result *out, char weights_sha256[65]);

typedef struct co_prediction {
    int64_t id; /* of the sample in its split */
    co_task task;
    bool unreadable;     /* the sample could not be read; ignore the other fields */
    int64_t label;       /* CLASSIFY: the right class; negative: the data has none */
    const char *file;    /* the file it came from; NULL: it has no file of its own */
    int64_t choice;      /* CLASSIFY: the likeliest class; LM: the likeliest token after the sample's end */
    double probability;  /* of the choice */
    const char *text;    /* LM: the token's text */
    const float *values; /* [n] REGRESS: the prediction; else the logits */
    int64_t n;
} co_prediction;
/* Each sample of the split in order, the first `limit` of them (< 0: all). What *r points to lives until
 * `each` returns.
 */
co_err co_predict(co_plan *p, co_split split, int64_t limit, void (*each)(void *ctx, const co_prediction *r),
                  void *ctx);
/* The same for the samples of CO_SPLIT_TEST of another set, made for this plan by co_pictures_open. */
co_err co_predict_on(co_plan *p, co_dataset *data, int64_t limit,
                     void (*each)(void *ctx, const co_prediction *r), void *ctx);

#endif
