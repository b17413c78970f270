/* pictures_int.h -- what a set of pictures lends to the user's own files, and to the probe. */
#ifndef CO_DATA_PICTURES_INT_H
#define CO_DATA_PICTURES_INT_H

#include "data/transform_int.h"

typedef struct picture_use {
    const transform *how;
    uint32_t height, width; /* of all pictures of the set; 0: they may have any size */
    bool decodes;           /* its pictures are files in a format of decode.c */
} picture_use;

#endif
