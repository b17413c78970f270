/* cache_int.h -- packed files, unpacked once and kept. */
#ifndef CO_DATA_CACHE_INT_H
#define CO_DATA_CACHE_INT_H

#include "data/images_int.h"

/* The path of a plain file that holds what `packed` (.xz or .gz) unpacks to, whole and checked; "" if there is none and
 * none can be made: then the packed file itself is to be read, and tells what is wrong with it. Fails only when memory
 * is out. Threads and processes may do this at once. */
co_err cache_plain(char plain[4096], const char *packed);

#endif
