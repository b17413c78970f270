/* zip.h -- a strict reader of zip archives, with entries stored or deflated.
 *
 *     co_zip_file zip;
 *     CO_TRY(co_zip_open(&zip, "ml-1m.zip"));
 *     co_zip_entry *e = co_zip_find(&zip, "ml-1m/ratings.dat");
 *     CO_TRY(co_zip_unpack(&zip, e, put, ctx));           // its bytes, piece by piece; length and CRC are
 *     checked co_zip_close(&zip);
 */
#ifndef CO_BASE_ZIP_H
#define CO_BASE_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/err.h"

enum { CO_ZIP_STORED = 0, CO_ZIP_DEFLATED = 8 }; /* method */

typedef struct co_zip_entry {
    const char *name;
    uint64_t offset, packed; /* its bytes, inside the file: co_zip_open has checked that */
    uint64_t len;            /* unpacked, as the directory says */
    int method;
    uint32_t crc;
    bool is_link; /* a symbolic link of Unix: its bytes are the path it points to */
    bool checked; /* the bytes have that CRC */
} co_zip_entry;

typedef struct co_zip_file {
    co_pool pool;
    const char *what;   /* names the file in messages */
    int fd;             /* -1: the file is in memory */
    const uint8_t *mem; /* [len], or NULL */
    uint64_t len;
    co_zip_entry *entry; /* [n] in bytewise name order; no name comes twice */
    int n;
} co_zip_file;

/* Both need co_zip_close, also when they fail. */
co_err co_zip_open(co_zip_file *zip, const char *path);
/* bytes are borrowed */
co_err co_zip_parse(co_zip_file *zip, const void *bytes, size_t len, const char *what);
void co_zip_close(co_zip_file *zip);

co_zip_entry *co_zip_find(const co_zip_file *zip, const char *name); /* NULL if there is none */
/* Calls `put` with one piece after the other. No more than entry->len bytes come out; at the end their number
 * and their CRC are right, or the result is CO_EFORMAT. */
co_err co_zip_unpack(const co_zip_file *zip, const co_zip_entry *entry,
                     co_err (*put)(void *ctx, const void *bytes, size_t len), void *ctx);

/* Both are for stored entries only. co_zip_check reads the whole entry once and compares its CRC; the second
 * call is free. co_zip_read gives bytes [from, from + len) of the entry, which must have them. */
co_err co_zip_check(const co_zip_file *zip, co_zip_entry *entry);
co_err co_zip_read(const co_zip_file *zip, const co_zip_entry *entry, uint64_t from, void *dst, size_t len);

#endif
