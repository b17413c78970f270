/* bytes.h -- numbers as little-endian bytes, for files and wires. */
#ifndef CO_BASE_BYTES_H
#define CO_BASE_BYTES_H

#include <stdint.h>

/* The lowest `bytes` bytes of x; 8 at most. */
static inline void co_le_put(uint8_t *at, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(x >> 8 * i);
}

static inline uint64_t co_le_get(const uint8_t *at, int bytes)
{
    uint64_t x = 0;

    for (int i = 0; i < bytes; i++)
        x |= (uint64_t)at[i] << 8 * i;
    return x;
}

#endif
