/* fuzz_cifar.c -- any bytes as rows of CIFAR-10 or CIFAR-100 (the first byte chooses), plain or packed. */
#include <stdlib.h>

#include "data/cifar_int.h"
#include "data/images_int.h"

enum { PIXELS = 3072, MOST_ROWS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static uint8_t rows[MOST_ROWS * (PIXELS + 2)];
    uint16_t label[MOST_ROWS];
    packed *in;

    if (len < 1)
        return 0;
    cifar_rows shape = {.skip = 1 + bytes[0] % 2, .classes = bytes[0] % 2 ? 100 : 10};
    shape.stride = (size_t)shape.skip + PIXELS;
    uint32_t n = 1 + bytes[0] / 2 % MOST_ROWS;
    if (packed_of_bytes(&in, bytes + 1, len - 1,
                        bytes[0] & 64    ? "f.bin.gz"
                        : bytes[0] & 128 ? "f.bin.xz"
                                         : "f.bin"))
        return 0;
    if (packed_exactly(in, rows, n * shape.stride, 0) == CO_OK &&
        cifar_labels(label, rows, n, &shape, "f.bin") == CO_OK)
        for (uint32_t r = 0; r < n; r++)
            if (label[r] >= shape.classes)
                abort();
    packed_close(in);
    return 0;
}
