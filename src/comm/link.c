/* link.c -- what all links share. */
#include "comm/link.h"

bool co_tag_same(const co_tag *a, const co_tag *b)
{
    return a->view == b->view && a->unit == b->unit && a->kind == b->kind && a->node == b->node &&
           a->chunk == b->chunk;
}

co_err co_link_meet(co_link *link, const co_link_peer *peers, int n)
{
    return link->ops->meet ? link->ops->meet(link, peers, n) : CO_OK;
}

int co_link_fd(const co_link *link)
{
    return link->ops->fd ? link->ops->fd(link) : -1;
}

bool co_link_lost(co_link *link, int *peer, char *why, size_t size)
{
    return link->ops->lost && link->ops->lost(link, peer, why, size);
}

co_link_counts co_link_count(const co_link *link)
{
    return link->ops->counts ? link->ops->counts(link) : (co_link_counts){0};
}

void co_link_close(co_link *link)
{
    if (link && link->ops->close)
        link->ops->close(link);
}
