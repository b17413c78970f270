/* link.c -- what all links share. */
#include "comm/link.h"

bool co_tag_same(const co_tag *a, const co_tag *b)
{
    return a->view == b->view && a->unit == b->unit && a->kind == b->kind && a->node == b->node &&
           a->chunk == b->chunk;
}
