/* decoding.c -- the graphs by which a model of pairs translates, one token at a time: what the encoder
 * makes of the sources, and one step of the decoder for the last token of every unfinished translation (a
 * row).
 *
 *   encode:  x, offsets -> [tokens, caches * width]: what every step needs of the sources
 *   step:    last [rows], place [rows], memory.0 ... [tokens, width] (the result of encode, in parts),
 *            kept.0 ... [kept, width] (what earlier steps gave), pick [keys]
 *            -> [rows, classes + caches * width]
 *
 * A step gives the logits of each row, and what later steps need of it. Row r attends to its own earlier
 * rows and itself: `pick` lists them from key_offsets[r] to key_offsets[r + 1], as rows of kept, or as
 * `kept` + r for itself. Rows of one sentence stand together, from beam_offsets[i] on. A search that goes
 * on with some translations only and drops others changes `pick`, and copies nothing.
 */
#include "nn/nn_int.h"

#include <stdio.h>

static co_err finish(co_graph **out, co_graph *g, co_node *result, const char *model)
{
    co_graph_output(g, result);
    co_err err = co_graph_error(g);
    if (err) {
        co_graph_free(g);
        return co_fail_in(err, "model '%s'", model);
    }
    *out = g;
    return CO_OK;
}

co_err co_encode_graph(co_graph **out, const co_model_def *def, const void *cfg, const co_io *io,
                       co_slice_shape room)
{
    co_build b = {.def = def, .io = io, .shape = room};

    CO_TRY(def->check(cfg, io));
    CO_TRY(co_graph_new(&b.g, false));
    b.x = co_input_ragged(b.g, "x", CO_I32, CO_SHAPE(room.tokens), CO_RAGGED_X);
    b.x_spans = (co_spans){co_input(b.g, "offsets", CO_I32, CO_SHAPE(room.n + 1)), NULL, io->max_len};
    return finish(out, b.g, def->decoder->encode(&b, cfg), def->name);
}

static co_node *table(co_graph *g, const char *what, int i, int64_t rows, int64_t width, bool ragged)
{
    char name[32];

    snprintf(name, sizeof name, "%s.%d", what, i);
    return ragged ? co_input_ragged(g, name, CO_F32, CO_SHAPE(rows, width), CO_RAGGED_X)
                  : co_input(g, name, CO_F32, CO_SHAPE(rows, width));
}

co_err co_step_graph(co_graph **out, const co_model_def *def, const void *cfg, const co_io *io,
                     const co_step_room *room)
{
    co_step s = {.io = io};
    int64_t width;
    int n = def->decoder->caches(cfg, &width);

    CO_TRY(def->check(cfg, io));
    CO_TRY(co_graph_new(&s.g, false));
    co_graph *g = s.g;
    s.last = co_input_ragged(g, "last", CO_I32, CO_SHAPE(room->rows), CO_RAGGED_Y);
    s.place = co_input_ragged(g, "place", CO_I32, CO_SHAPE(room->rows), CO_RAGGED_Y);
    s.pick = co_input_ragged(g, "pick", CO_I32, CO_SHAPE(room->keys), CO_RAGGED_KEYS);
    s.rows.offsets = co_input(g, "row_offsets", CO_I32, CO_SHAPE(room->rows + 1));
    s.keys.offsets = co_input(g, "key_offsets", CO_I32, CO_SHAPE(room->rows + 1));
    s.beams.offsets = co_input(g, "beam_offsets", CO_I32, CO_SHAPE(room->sentences + 1));
    s.sources.offsets = co_input(g, "offsets", CO_I32, CO_SHAPE(room->sentences + 1));
    s.rows.longest = 1;
    s.beams.longest = room->rows;
    s.keys.longest = room->longest;
    s.sources.longest = io->max_len;
    for (int i = 0; i < n && i < CO_MAX_CACHES; i++) {
        s.memory[i] = table(g, "memory", i, room->tokens, width, true);
        s.kept[i] = table(g, "kept", i, room->kept, width, false);
    }
    if (n > CO_MAX_CACHES)
        co_graph_fail(g, "a model of %d caches: %d are the most", n, CO_MAX_CACHES);
    return finish(out, g, def->decoder->step(&s, cfg), def->name);
}
