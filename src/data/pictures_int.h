/* pictures_int.h -- what a set of pictures lends to the user's own files. */
#ifndef CO_DATA_PICTURES_INT_H
#define CO_DATA_PICTURES_INT_H

#include "data/transform_int.h"

typedef struct picture_use {
    const transform *how;
    uint32_t height, width; /* of all pictures of the set; 0: they may have any size */
} picture_use;

#endif
