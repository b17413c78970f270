/* ckpt_int.h -- the manifest as this room sees it: the meta and the list of files it vouches for. */
#ifndef CO_CKPT_CKPT_INT_H
#define CO_CKPT_CKPT_INT_H

#include "base/alloc.h"
#include "ckpt/ckpt.h"
#include "tensor/safetensors.h"

#define MODEL_FILE    "model.safetensors"
#define OPTIM_FILE    "optim.safetensors"
#define MANIFEST_FILE "manifest.json"
#define TMP_PREFIX    ".tmp-" /* not whole yet, or on its way out */
#define OLD_PREFIX    ".old-" /* whole; being replaced by one of the same name */

#define VIEW_PREFIX ".view~" /* an empty file: a writer of this view has been here */

/* temp.c: root/.tmp-WHATNAME~RUN-VIEW-HOST-PID, the caller's. `by` may be NULL. */
char *temp_path(const char *root, const char *what, const char *name, const co_ckpt_writer *by);
/* Has the entry no writer that could still publish it? */
bool temp_is_left_over(const char *root, const char *entry, const co_ckpt_writer *me);

/* view.c: the newest view of a run that has saved in this folder. */
co_err view_enter(const char *root, const co_ckpt_writer *by); /* leaves its mark; refused like view_check */
co_err view_check(const char *root, const co_ckpt_writer *by); /* CO_EFAIL: a larger view has been here */
bool view_is_left_over(const char *entry, const co_ckpt_writer *me);
uint32_t run_digits(const co_ckpt_writer *by); /* 0: unknown */

struct manifest_file {
    const char *name; /* in the manifest's pool */
    uint64_t bytes;
    char sha256[65];
};

struct manifest {
    co_pool pool;
    co_ckpt_meta meta;
    struct manifest_file *file; /* [n] in the pool */
    int n;
};

void manifest_fini(struct manifest *m); /* a zeroed one is fine */
co_err manifest_parse(struct manifest *out, const char *bytes, size_t len, const char *what);
/* From the folder `path`. */
co_err manifest_read(struct manifest *out, const char *path);
const struct manifest_file *manifest_find(const struct manifest *m, const char *name);
/* The text of a manifest, checked by parsing it; *out is the caller's (co_free). */
co_err manifest_text(char **out, const co_ckpt_meta *meta, const struct manifest_file *file, int n);

/* Does a moment of this name hold numbers for the entry? */
bool moment_covers(const char *moment, const co_entry *e);

/* A name that is one plain part of a path: letters, digits and "._+-=@", not beginning with a dot, up to
 * 200. */
bool plain_name(const char *name);

/* load.c: a file of the folder `dir`; weights_sha256 of a model file. */
co_err open_file(co_st_file **out, const char *dir, const char *name);
co_err hash_weights(co_st_file *f, char hex[65]);

/* source.c: a file of weights, safetensors or torch.save's, seen alike. `path` may be the folder of a
 * checkpoint or a run. What is wrong with it is CO_EINPUT. */
typedef struct weights_file weights_file;
co_err weights_open(weights_file **out, const char *path);
void weights_close(weights_file *f); /* NULL is fine */
int weights_count(const weights_file *f);
const co_st_tensor *weights_at(const weights_file *f, int i); /* in bytewise name order */
const co_st_tensor *weights_find(const weights_file *f, const char *name);
co_err weights_check(weights_file *f); /* checksums, where there are some; once before weights_read */
co_err weights_read(weights_file *f, const co_st_tensor *t, void *dst); /* all t->len bytes, row-major */

/* computed.c: tensors that a file may have although the model computes them; needs weights_check. */
bool weights_is_computed(const char *name);
co_err weights_check_computed(weights_file *f); /* CO_EINPUT: one holds other numbers */

/* resample.c: position embeddings for pictures of another size. resample_side: the tensor of this shape is
 * one for side x side patches and fits the entry after resampling; 0: it does not, or needs no resampling.
 * src has the whole tensor [1, 1 + side * side, d]. */
int64_t resample_side(const co_entry *e, const co_shape *there);
co_err resample(float *dst, const co_entry *e, const float *src, int64_t side);

/* Reads the manifest and checks every byte of the folder against it. *out is the caller's on success. */
co_err verify(struct manifest *out, const char *path);

#endif
