/* first_values.c -- initial values that come from the training pictures: parameters with CO_INIT_WHITEN.
 *
 * The first 5,000 samples of the training split are used, or all if there are fewer, as evaluation would see
 * them, without random changes. They depend on the data alone, so every host computes the same bits. A
 * checkpoint has the values like those of any parameter; a run that continues does not come here.
 */
#include "train/regions_int.h"

#include "base/alloc.h"

enum { PICTURES = 5000, AT_ONCE = 50 };

static co_err add_pictures(const co_dataset *data, co_whiten *whiten, float *x)
{
    uint32_t n = data->count[CO_SPLIT_TRAIN] < PICTURES ? data->count[CO_SPLIT_TRAIN] : PICTURES;
    uint32_t ids[AT_ONCE];

    for (uint32_t first = 0; first < n; first += AT_ONCE) {
        int some = (int)(n - first < AT_ONCE ? n - first : AT_ONCE);
        for (int i = 0; i < some; i++)
            ids[i] = first + (uint32_t)i;
        int bad = co_dataset_fill(data, CO_SPLIT_TRAIN, ids, (co_slice_shape){.n = some}, &(co_draw){0},
                                  &(co_slice_dst){.x = x});
        if (bad < 0)
            return co_dataset_lost();
        /* a damaged picture is black, as in training: it adds nothing to the covariance */
        co_whiten_add(whiten, x, some);
    }
    return CO_OK;
}

static co_err whiten_entry(const co_dataset *data, const co_entry *entry, float *out)
{
    co_whiten *whiten = co_alloc(sizeof *whiten);
    float *x = whiten ? co_array((size_t)co_shape_count(&data->io.x) * AT_ONCE, sizeof *x) : NULL;
    co_err err = x ? co_whiten_init(whiten, entry, &data->io) : CO_ENOMEM;

    if (!err)
        err = add_pictures(data, whiten, x);
    if (!err)
        co_whiten_filters(whiten, out);
    co_free(x);
    co_free(whiten);
    return err;
}

co_err values_from_data(const co_plan *plan, float *state)
{
    const co_layout *layout = plan->layout;

    for (int i = 0; i < layout->n; i++)
        if (layout->entry[i].init.kind == CO_INIT_WHITEN)
            CO_TRY(whiten_entry(plan->data, &layout->entry[i], state + layout->entry[i].offset));
    return CO_OK;
}
