/* ckpt.h -- checkpoints: a folder of safetensors and a manifest written last.
 *
 *     checkpoints/epoch_003/      model.safetensors      weights and buffers, outside names
 *                                 optim.safetensors      "<moment>.<parameter>"; absent if no moments
 *                                 manifest.json          meta, and name, bytes, SHA-256 of each file
 *     checkpoints/last -> epoch_003                       (a link, moved atomically)
 *
 * A save goes to ".tmp-<name>~<writer>" beside it (temp.c); files are fsynced, the manifest written, the
 * folder fsynced and renamed: it is there whole or not at all. Loading checks every byte against the manifest
 * first. Format: docs/formats/checkpoint.md.
 */
#ifndef CO_CKPT_CKPT_H
#define CO_CKPT_CKPT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "tensor/layout.h"

/* What a checkpoint says about itself. Strings are fixed so that it can be copied; compare it
 * field by field, it has padding. */
typedef struct co_ckpt_meta {
    int64_t step;    /* state after this many steps */
    int64_t applied; /* steps that were applied (not skipped): the optimiser's t */
    int64_t epoch, samples;
    uint64_t seed;
    int64_t slices, global_batch;
    int64_t view; /* of the hosts that the state is from; 1 on one host */
    char model[64], data[64], optim[32], kernels[32];
    char config_sha256[65], data_sha256[65], weights_sha256[65];
    json_t *extra; /* free-form object, owned by the meta (best-so-far and the like); NULL if none */
} co_ckpt_meta;
void co_ckpt_meta_fini(co_ckpt_meta *m);

/* A moment has a number for every element of every parameter. The moment of this name is the average of
 * the weights; it covers running statistics as well. */
#define CO_CKPT_AVERAGE "ema"

/* Who saves. Of two writers of one run, the one with the larger view is right: the other was cut off and may
 * not know it yet. */
typedef struct co_ckpt_writer {
    const char *run; /* the run's id; NULL: unknown, and the view means nothing */
    int64_t view;
} co_ckpt_writer;

/* Where the state comes from while it is saved: part 0 is the weights, 1.. the moments. `read` fills dst
 * with `count` elements from `offset`; it may be called for any range, in any order. `ready` (NULL: none)
 * is called once, with the writer's view, when all is written and the next thing is to make the checkpoint
 * visible: an error from it means that nothing is saved. `read_through` (NULL: none) is called once, as soon
 * as nothing will be read any more: before anything is fsynced. */
typedef struct co_ckpt_source {
    co_err (*read)(void *ctx, int part, size_t offset, size_t count, float *dst);
    void *ctx;
    co_err (*ready)(void *ctx, int64_t view);
    void (*read_through)(void *ctx);
    co_ckpt_writer by;
} co_ckpt_source;

/* Saves as root/name and points root/last at it. A checkpoint of that name is replaced once the new one is
 * whole. A name has letters, digits and ._+-=@ and does not begin with a dot. meta's weights_sha256 is
 * computed here and written back. A full disk or a read-only folder is CO_EIO with path and errno, and
 * nothing half-made is left. If the link cannot be moved, the checkpoint is saved all the same and the log
 * has a warning. root is made if it is missing, its parents are not. CO_EFAIL, and
 * nothing is saved, if a writer of the same run with a larger view has begun to save here. */
co_err co_ckpt_save(const char *root, const char *name, const co_layout *layout, int moments,
                    const char *const *moment_names, co_ckpt_meta *meta, const co_ckpt_source *src);

/* Manifest only. CO_EFORMAT names file and fault. */
co_err co_ckpt_read_meta(co_ckpt_meta *out, const char *path);
co_err co_ckpt_parse_manifest(co_ckpt_meta *out, const char *bytes, size_t len,
                              const char *what); /* for fuzzing */

/* Every file's size and SHA-256 against the manifest, safetensors headers parsed, weights_sha256 computed
 * again. */
co_err co_ckpt_verify(const char *path);
/* The same, but the message does not begin with the path: for a caller that has printed it. */
co_err co_ckpt_examine(const char *path);

/* Verifies, then loads into state and moments (each layout->count). A checkpoint of another model: CO_EINPUT
 * naming the first differing tensor (bytewise name order) with both shapes. moment files that do not match:
 * the same. moments = 0 loads weights only. A moment whose place is NULL is compared and not loaded; one
 * whose place is `state` replaces the weights that it covers. Nothing is written to state unless everything
 * fits. */
co_err co_ckpt_load(const char *path, const co_layout *layout, float *state, int moments,
                    const char *const *moment_names, float *const *moment, co_ckpt_meta *meta);

/* Would it load into this layout? Names, dtypes and shapes only: reads manifest and headers, no weights.
 * The errors are those of co_ckpt_load. */
co_err co_ckpt_fits(const char *path, const co_layout *layout, int moments, const char *const *moment_names);

/* The newest good checkpoint under root, by step, then by name; *path is the caller's. Bad ones are passed
 * to `bad` with the reason, and skipped. CO_EINPUT if there is no good one. */
co_err co_ckpt_newest(char **path, const char *root,
                      void (*bad)(void *ctx, const char *path, const char *why), void *ctx);

/* The checkpoint under root of the state after `step` steps that was evaluated; *path is the caller's. Its
 * bytes are not verified. CO_EINPUT if there is none. */
co_err co_ckpt_of_step(char **path, const char *root, int64_t step);

typedef struct co_ckpt_info {
    char *name;
    co_ckpt_meta meta;
    uint64_t bytes;
    char why_bad[256]; /* "" if the manifest reads */
} co_ckpt_info;
/* All under root, those whose manifest does not read first, then by step, then by name; free with
 * co_ckpt_ls_free. ".old-NAME" is the predecessor of NAME, left by a kill during a save. */
co_err co_ckpt_ls(co_ckpt_info **out, int *n, const char *root);
void co_ckpt_ls_free(co_ckpt_info *list, int n);

/* Removes all but the newest `keep` whose names begin with `prefix`, never what last or best points to nor
 * a folder whose manifest does not read; and leftovers: .tmp- folders that nobody can publish any more (`me`,
 * the writer that asks, helps to tell; NULL: nobody), and .old- ones whose successor is there. */
co_err co_ckpt_prune(const char *root, const char *prefix, int keep, const co_ckpt_writer *me);
/* The same, sparing also the `top` best by the value in their meta's extra ("value" with "up", as the
 * train room writes it; < 0: all that have one), and moves root/best to the best of them. */
co_err co_ckpt_prune_but_best(const char *root, int keep, int top, const co_ckpt_writer *me);

/* First weights from a file with the model's names: safetensors, or torch.save's (.pth, .pt, .ckpt); or from
 * a checkpoint's folder, or a run's: its last. Every tensor must be there with the same shape and dtype, and
 * none too many: else CO_EINPUT naming the first in name order. Those that match a pattern of `skip`
 * ("fc.*,head.?"; NULL: none) are neither asked for nor taken: the state keeps its own. A position embedding
 * for square pictures of another size is resampled. state NULL: compares only. Nothing is
 * written to state unless everything fits. */
co_err co_weights_load(const char *path, const co_layout *layout, const char *skip, float *state);
/* What co_weights_load changes on the way, for the user: "pos_embed is resampled from 14x14 to 8x8 patches";
 * empty if nothing is. */
co_err co_weights_note(char *text, size_t size, const char *path, const co_layout *layout, const char *skip);

/* Must the model's head start anew? The head is the layer of the model's last parameter ("fc", "head"). It
 * must if the file has none of its tensors, or if they have another number of outputs and are alike
 * otherwise. */
typedef struct co_new_head {
    char skip[136];  /* the pattern for co_weights_load: "fc.*"; "": it fits, or not in another way */
    char there[160]; /* the shape of its weight in the file; "": the file has no head */
    char here[160];
} co_new_head;
co_err co_weights_head(const char *path, const co_layout *layout, co_new_head *out);

/* The verified checkpoint's weights, or their average, as one safetensors file at `to`, which must not
 * exist. */
co_err co_weights_export(const char *ckpt, const char *to, bool average);

/* Files of torch.save. Tensors and plain values are read, nothing is run: a file that asks for anything else
 * is refused, CO_EINPUT with the name of what it asks for. */
typedef struct co_import_how {
    const char *prefix; /* only tensors whose names begin so, without it; NULL: see co_import_facts.prefix */
    bool drop_objects;  /* leave out what is no tensor and no plain value, instead of refusing the file */
} co_import_how;

typedef struct co_import_facts {
    int tensors;
    int left_out;     /* entries of the state dict that are no tensors, or have another prefix */
    uint64_t bytes;   /* of all tensors */
    char held_by[32]; /* the key under which the state dict was: "state_dict"; "": it is the file's value */
    char prefix[64];  /* what was taken off the names: as given, or "model.", "net.", "module." of all */
} co_import_facts;

/* The state dict of the file `from` as one safetensors file at `to`, which must not exist; names without
 * prefix, tensors contiguous, dtypes as they are. `how` and `facts` may be NULL. Damage is CO_EFORMAT, and
 * nothing is left at `to`. */
co_err co_weights_import(const char *from, const char *to, const co_import_how *how, co_import_facts *facts);

/* Moves the link root/link to name. */
co_err co_ckpt_link(const char *root, const char *link, const char *name);

#endif
