/* decoder.c -- the two executors by which sentences are translated (nn/decoding.c), and their inputs.
 *
 * The encoder runs once for a group of sentences. Then every step adds one token to each unfinished
 * translation. What a step computed for a token is kept and never computed again.
 */
#include "train/translate_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "train/plan_int.h"

enum { LONGER = 50 }; /* a translation has at most so many tokens more than its source */

int decoder_limit(const decoder *d, int source)
{
    return source + LONGER < d->most - 1 ? source + LONGER : d->most - 1;
}

/* --- making it ------------------------------------------------------------------------------------------ */
static co_err add_exec(decoder *d, const co_plan *plan, co_graph *graph)
{
    shape_exec *shaped = &d->set.e[d->set.n];
    co_err err = co_exec_new_team(&shaped->exec, graph, plan->kernels, plan->threads, 0);

    co_graph_free(graph);
    if (err)
        return err;
    const co_exec_info *info = co_exec_info_of(shaped->exec);
    exec_set *set = &d->set;
    set->n++;
    set->input_bytes = info->input_bytes > set->input_bytes ? info->input_bytes : set->input_bytes;
    set->work_bytes = info->work_bytes > set->work_bytes ? info->work_bytes : set->work_bytes;
    set->output_bytes = info->output_bytes > set->output_bytes ? info->output_bytes : set->output_bytes;
    return co_layout_same(plan->layout ? plan->layout : co_exec_layout(set->e[0].exec),
                          co_exec_layout(shaped->exec));
}

static co_err make_execs(decoder *d, const co_plan *plan)
{
    const co_train_spec *spec = &plan->spec;
    const co_io *io = &plan->data->io;
    co_slice_shape sources = {.n = d->room.sentences, .tokens = d->room.tokens};
    co_graph *graph;

    if (!(d->set.e = co_array(2, sizeof *d->set.e)))
        return CO_ENOMEM;
    CO_TRY(co_encode_graph(&graph, spec->model, spec->model_cfg, io, sources));
    CO_TRY(add_exec(d, plan, graph));
    CO_TRY(co_step_graph(&graph, spec->model, spec->model_cfg, io, &d->room));
    return add_exec(d, plan, graph);
}

co_err decoder_init(decoder *out, const co_plan *plan, int beam, int longest)
{
    const co_io *io = &plan->data->io;
    int most = longest + LONGER + 1 < io->max_len ? longest + LONGER + 1 : (int)io->max_len;
    decoder d = {.beam = beam, .longest = longest, .most = most, .classes = io->classes};

    d.caches = plan->spec.model->decoder->caches(plan->spec.model_cfg, &d.width);
    d.room = (co_step_room){.sentences = TRANSLATE_GROUP,
                            .tokens = TRANSLATE_GROUP * longest,
                            .rows = TRANSLATE_GROUP * beam,
                            .kept = TRANSLATE_GROUP * beam * most,
                            .keys = TRANSLATE_GROUP * beam * most,
                            .longest = most};
    co_err err = make_execs(&d, plan);
    if (err) {
        decoder_fini(&d);
        return err;
    }
    *out = d;
    return CO_OK;
}

void decoder_fini(decoder *d)
{
    exec_set_fini(&d->set);
}

/* --- inputs --------------------------------------------------------------------------------------------- */
static void *input(const decoder *d, const co_bases *bases, int exec, const char *name)
{
    size_t offset;
    co_dtype dtype;
    co_shape shape;
    co_err err = co_exec_input(d->set.e[exec].exec, name, &offset, &dtype, &shape);

    CO_ASSERT(err == CO_OK, "an input that the graph declares");
    return (char *)bases->input + offset;
}

void *decoder_input(const decoder *d, const co_bases *bases, const char *name)
{
    return input(d, bases, 1, name);
}

static float *table(const decoder *d, const co_bases *bases, const char *what, int i)
{
    char name[32];

    snprintf(name, sizeof name, "%s.%d", what, i);
    return decoder_input(d, bases, name);
}

/* The encoder's result becomes memory.0, memory.1 ... of the steps. */
void decoder_encode(const decoder *d, co_bases *bases, const co_source *source, int n, const co_run *run,
                    _Atomic uint32_t *beat)
{
    int32_t *x = input(d, bases, 0, "x"), *offsets = input(d, bases, 0, "offsets");
    int32_t ends[TRANSLATE_GROUP + 1] = {0};
    size_t wide = (size_t)d->width, caches = (size_t)d->caches;

    for (int i = 0; i < TRANSLATE_GROUP; i++) {
        ends[i + 1] = ends[i] + (i < n ? source[i].n : 0);
        if (i < n)
            memcpy(x + ends[i], source[i].token, (size_t)source[i].n * sizeof *x);
    }
    memcpy(offsets, ends, sizeof ends);
    bases->ragged[CO_RAGGED_X] = ends[TRANSLATE_GROUP];
    co_exec_run(d->set.e[0].exec, bases, run, beat);
    const float *out = bases->output; /* [tokens, caches * width] */
    for (size_t c = 0; c < caches; c++) {
        float *to = table(d, bases, "memory", (int)c);
        for (size_t row = 0; row < (size_t)ends[TRANSLATE_GROUP]; row++)
            memcpy(to + row * wide, out + (row * caches + c) * wide, wide * sizeof *to);
    }
    memcpy(decoder_input(d, bases, "offsets"), ends, sizeof ends);
}

void decoder_keep(const decoder *d, const co_bases *bases, int kept, int rows)
{
    size_t wide = (size_t)d->width, row_size = (size_t)d->classes + (size_t)d->caches * wide;
    const float *out = bases->output; /* [rows, classes + caches * width] */

    for (int c = 0; c < d->caches; c++) {
        const float *from = out + (size_t)d->classes + (size_t)c * wide;
        float *to = table(d, bases, "kept", c) + (size_t)kept * wide;
        for (size_t r = 0; r < (size_t)rows; r++)
            memcpy(to + r * wide, from + r * row_size, wide * sizeof *to);
    }
}
