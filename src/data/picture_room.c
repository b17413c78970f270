/* picture_room.c -- memory for a decoded picture, after its size was checked. Every format asks here before
 * it decodes, so no file can claim more memory than the bound allows. */
#include "data/decode_int.h"

#include <stdio.h>

bool picture_in_bounds(uint64_t height, uint64_t width, uint64_t most_pixels, char why[WHY_LEN])
{
    if (height < 1 || width < 1 || height > PICTURE_SIDE_MAX || width > PICTURE_SIDE_MAX ||
        height * width > most_pixels) {
        snprintf(why, WHY_LEN, "%llu x %llu pixels; at most %llu in all, %d a side, are read",
                 (unsigned long long)width, (unsigned long long)height, (unsigned long long)most_pixels,
                 PICTURE_SIDE_MAX);
        return false;
    }
    return true;
}

uint8_t *picture_room(picture *out, uint64_t height, uint64_t width, uint64_t most_pixels, char why[WHY_LEN])
{
    if (!picture_in_bounds(height, width, most_pixels, why))
        return NULL;
    uint8_t *room = scratch_get(SCRATCH_PICTURE, (size_t)(height * width * 3));
    *out = (picture){room, (uint32_t)height, (uint32_t)width, 3, (size_t)width * 3};
    return room;
}
