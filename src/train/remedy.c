/* remedy.c -- see remedy_int.h. */
#include "train/remedy_int.h"

remedy remedy_for(const trouble *what)
{
    if (what->done)
        return REMEDY_LET_GO;
    if (!what->held && what->in_a_row < SAME_PLACE_LIMIT)
        return REMEDY_REPLACE;
    return what->hosts > 1 ? REMEDY_LEAVE : REMEDY_END;
}
