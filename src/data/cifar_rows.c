/* cifar_rows.c -- the labels of CIFAR's rows: one byte, or two for CIFAR-100 (coarse, fine), before the
 * pixels. */
#include "data/cifar_int.h"

enum { COARSE = 20 }; /* classes of CIFAR-100's first label */

static co_err check_label(const char *file, uint32_t row, int label, int classes)
{
    if (label < classes)
        return CO_OK;
    return co_fail(CO_EINPUT, "%s: picture %u has label %d; 0 to %d are right: the file is damaged", file,
                   row, label, classes - 1);
}

co_err cifar_labels(uint16_t *label, const uint8_t *bytes, uint32_t n, const cifar_rows *rows, const char *file)
{
    for (uint32_t r = 0; r < n; r++, bytes += rows->stride) {
        if (rows->skip == 2)
            CO_TRY(check_label(file, r, bytes[0], COARSE));
        label[r] = bytes[rows->skip - 1];
        CO_TRY(check_label(file, r, label[r], rows->classes));
    }
    return CO_OK;
}
