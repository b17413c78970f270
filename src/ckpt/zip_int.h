/* zip_int.h -- a strict reader of zip archives whose entries are stored, not compressed: the archives that
 * torch.save writes.
 *
 *     zip_file zip;
 *     CO_TRY(zip_open(&zip, "model.pth"));
 *     zip_entry *e = zip_find(&zip, "model/data.pkl");
 *     CO_TRY(zip_check(&zip, e));                         // its CRC
 *     CO_TRY(zip_read(&zip, e, 0, dst, e->len));
 *     zip_close(&zip);
 */
#ifndef CO_CKPT_ZIP_INT_H
#define CO_CKPT_ZIP_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/err.h"

typedef struct zip_entry {
    const char *name;
    uint64_t offset, len; /* its bytes, inside the file: zip_open has checked that */
    uint32_t crc;
    bool checked; /* the bytes have that CRC */
} zip_entry;

typedef struct zip_file {
    co_pool pool;
    const char *what;   /* names the file in messages */
    int fd;             /* -1: the file is in memory */
    const uint8_t *mem; /* [len], or NULL */
    uint64_t len;
    zip_entry *entry; /* [n] in bytewise name order; no name comes twice */
    int n;
} zip_file;

/* Both need zip_close, also when they fail. */
co_err zip_open(zip_file *zip, const char *path);
co_err zip_parse(zip_file *zip, const void *bytes, size_t len, const char *what); /* bytes are borrowed */
void zip_close(zip_file *zip);

zip_entry *zip_find(const zip_file *zip, const char *name); /* NULL if there is none */
/* Reads the whole entry once and compares its CRC; the second call is free. */
co_err zip_check(const zip_file *zip, zip_entry *entry);
/* Bytes [from, from + len) of the entry, which must have them. */
co_err zip_read(const zip_file *zip, const zip_entry *entry, uint64_t from, void *dst, size_t len);

#endif
