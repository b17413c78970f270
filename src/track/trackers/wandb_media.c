/* wandb_media.c -- histograms and texts of the record, as wandb writes them. */
#include "track/wandb_media_int.h"

#include "base/json.h"

static co_err take_histogram(co_wandb *run, const json_t *h, int64_t step, const char *name, double t)
{
    json_t *edges = json_object_get(h, "edges"), *counts = json_object_get(h, "counts");
    json_t *value = edges && counts
                        ? json_pack("{ss sO sO}", "_type", "histogram", "values", counts, "bins", edges)
                        : NULL;
    co_err err = value ? co_wandb_value(run, step, name, value, t) : CO_OK;

    json_decref(value);
    return err;
}

co_err wandb_take_media(co_wandb *run, const char *dir, const json_t *line, int64_t step, const char *name,
                        double t)
{
    const json_t *histogram = json_object_get(line, "histogram"), *text = json_object_get(line, "text");

    (void)dir;
    if (json_is_object(histogram))
        return take_histogram(run, histogram, step, name, t);
    return json_is_string(text) ? co_wandb_value(run, step, name, text, t) : CO_OK;
}
