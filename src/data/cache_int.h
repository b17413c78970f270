/* cache_int.h -- packed files, unpacked once and kept. */
#ifndef CO_DATA_CACHE_INT_H
#define CO_DATA_CACHE_INT_H

#include "data/images_int.h"

/* The path of a plain file that holds what `packed` (.xz or .gz) unpacks to, whole and checked; "" if there
 * is none and none can be made: then the caller reads the packed file itself, which says what is wrong with
 * it. Fails only when memory is out, or when more than `most` bytes come out (0: the limit of packed_open).
 * Threads and processes may do this at once. */
co_err cache_plain(char plain[4096], const char *packed, uint64_t most);

#endif
