/* cifar_int.h -- the rows of CIFAR's binary files. */
#ifndef CO_DATA_CIFAR_INT_H
#define CO_DATA_CIFAR_INT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cifar_rows {
    size_t stride; /* bytes of a row */
    int skip;      /* labels before the pixels: 1, or 2 for CIFAR-100; the last one counts */
    int classes;
} cifar_rows;

/* The labels of n rows. CO_EINPUT names the file and the first row whose label is out of range. */
co_err cifar_labels(uint16_t *label, const uint8_t *bytes, uint32_t n, const cifar_rows *rows,
                    const char *file);

#endif
