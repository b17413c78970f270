/* torch_int.h -- a file of torch.save: a zip archive with a pickle (NAME/data.pkl) and the bytes of each
 * storage (NAME/data/0, NAME/data/1 ...). Files of torch before 1.6 are no archives and are refused. */
#ifndef CO_CKPT_TORCH_INT_H
#define CO_CKPT_TORCH_INT_H

#include "ckpt/ckpt.h"
#include "base/zip.h"
#include "tensor/safetensors.h"

typedef struct torch_file torch_file;

/* Opens the file and checks everything but the storages' CRCs. `how` may be NULL. */
co_err torch_open(torch_file **out, const char *path, const co_import_how *how);
co_err torch_parse(torch_file **out, const void *bytes, size_t len, const char *what, const co_import_how *how);
void torch_close(torch_file *file); /* NULL is fine */

int torch_count(const torch_file *file);
/* in bytewise name order; `offset` means nothing */
const co_st_tensor *torch_at(const torch_file *file, int i);
const co_import_facts *torch_facts(const torch_file *file);
/* The CRC of every storage that a tensor uses. Needed once before torch_read. */
co_err torch_check(torch_file *file);
/* All t->len bytes of the tensor, row-major whatever its strides are. */
co_err torch_read(const torch_file *file, const co_st_tensor *t, void *dst);

/* source.c: what the first bytes of a file say. */
typedef enum { TORCH_NONE, TORCH_ZIP, TORCH_OLD /* a bare pickle, from before torch 1.6 */ } torch_format;
torch_format torch_format_of(const char *path);
co_err torch_refuse_old(const char *path);

#endif
