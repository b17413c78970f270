/* zip_int.h -- what the two files of the zip reader share. */
#ifndef CO_BASE_ZIP_INT_H
#define CO_BASE_ZIP_INT_H

#include "base/zip.h"

co_err zip_read_at(const co_zip_file *zip, uint64_t at, void *dst, size_t len);
/* Fills zip->entry. `what`, `len` and the source of the bytes must be set. */
co_err zip_read_index(co_zip_file *zip);

int zip_name_order(const void *a, const void *b); /* of two entries, for bsearch and qsort */

#endif
