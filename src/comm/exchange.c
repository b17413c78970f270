/* exchange.c -- see exchange.h. */
#include "comm/exchange.h"

#include <string.h>

#include "base/alloc.h"

enum { NO_PIECE = 0xffff };

co_err co_exchange_init(co_exchange *x, co_link *link, const co_deal *deal, const co_exchange_map *map)
{
    *x = (co_exchange){.link = link, .deal = deal, .map = *map};
    x->missing = co_array(map->chunks, sizeof *x->missing);
    x->sent = co_array(map->chunks, sizeof *x->sent);
    return x->missing && x->sent ? CO_OK : CO_ENOMEM;
}

void co_exchange_fini(co_exchange *x)
{
    co_free(x->missing);
    co_free(x->sent);
}

static size_t first_own(const co_deal *deal, int h, size_t chunks)
{
    size_t hosts = (size_t)deal->hosts;

    return ((size_t)h * chunks + hosts - 1) / hosts;
}

static size_t span(const co_exchange_map *map, size_t c, size_t *lo)
{
    *lo = c * map->chunk;
    return *lo + map->chunk < map->count ? map->chunk : map->count - *lo;
}

/* Where piece number `piece` (of all that come from others) of own chunk c lies. */
static float *place(const co_deal *deal, const co_exchange_map *map, int piece, size_t c)
{
    size_t first = first_own(deal, deal->me, map->chunks),
           n = first_own(deal, deal->me + 1, map->chunks) - first;

    return map->inbox + ((size_t)piece * n + (c - first)) * map->chunk;
}

const float *co_exchange_piece(const co_deal *deal, const co_cut *cut, const co_exchange_map *map, int level,
                               int index, size_t lo)
{
    co_piece list[2 * CO_MAX_LEVELS];
    int before = 0;

    for (int h = 0; h < deal->hosts; h++) {
        if (h == deal->me)
            continue;
        int n = co_deal_pieces(deal, cut, h, list);
        for (int i = 0; i < n; i++)
            if (list[i].level == level && list[i].index == index)
                return place(deal, map, before + i, lo / map->chunk) + lo % map->chunk;
        before += n;
    }
    return NULL;
}

int co_exchange_pieces(int slices)
{
    co_deal d = {.hosts = 3, .me = 1};
    co_cut all = co_cut_make((uint32_t)slices, (uint32_t)slices, slices, false);
    co_piece list[2 * CO_MAX_LEVELS];
    int most = 1;

    d.from[3] = (int16_t)slices;
    for (int from = 0; from < slices; from++)
        for (int to = from + 1; to <= slices; to++) {
            d.from[1] = (int16_t)from;
            d.from[2] = (int16_t)to;
            int n = co_deal_pieces(&d, &all, 1, list);
            most = n > most ? n : most;
        }
    return most;
}

size_t co_exchange_inbox(size_t chunk, size_t chunks, int hosts, int pieces)
{
    size_t most = 0;

    for (int h = 2; h <= hosts; h++) {
        size_t own = (chunks + (size_t)h - 1) / (size_t)h,
               need = own * (size_t)(h - 1) * (size_t)pieces * chunk;
        most = need > most ? need : most;
    }
    return most;
}

/* --- a step --------------------------------------------------------------------------------------------- */
static co_tag tag_of(const co_exchange *x, co_msg kind, int node, size_t c)
{
    return (co_tag){x->deal->view, x->unit, (uint16_t)kind, (uint16_t)node, (uint32_t)c};
}

/* The pieces of own chunk c, from everybody else. */
static co_err post_pieces(co_exchange *x, size_t c)
{
    const co_deal *deal = x->deal;
    size_t lo, len = span(&x->map, c, &lo) * sizeof(float);

    for (int h = 0; h < deal->hosts; h++) {
        if (h == deal->me)
            continue;
        for (int i = 0; i < x->pieces[h]; i++, x->missing[c]++) {
            co_tag tag = tag_of(x, CO_MSG_PIECE, i, c);
            CO_TRY(co_link_post(x->link, deal->id[h], &tag, place(deal, &x->map, x->before[h] + i, c), len));
        }
        if (x->pieces[h])
            continue;
        co_tag tag = tag_of(x, CO_MSG_PIECE, NO_PIECE, c);
        CO_TRY(co_link_post(x->link, deal->id[h], &tag, x->map.inbox, 0));
        x->missing[c]++;
    }
    return CO_OK;
}

static co_err post_chunk(co_exchange *x, size_t c)
{
    int owner = co_deal_owner(x->deal, c, x->map.chunks);
    size_t lo, len = span(&x->map, c, &lo) * sizeof(float);
    co_tag tag = tag_of(x, CO_MSG_SUM, 0, c);

    x->missing[c] = 0;
    if (owner == x->deal->me)
        return post_pieces(x, c);
    x->missing[c] = 1;
    return co_link_post(x->link, x->deal->id[owner], &tag, x->map.sum + lo, len);
}

co_err co_exchange_begin(co_exchange *x, uint32_t unit, uint32_t turn, const co_cut *cut)
{
    co_piece list[2 * CO_MAX_LEVELS];
    int before = 0;

    x->unit = unit;
    x->turn = turn;
    x->cut = *cut;
    memset(x->sent, 0, x->map.chunks);
    x->unsent = x->map.chunks;
    for (int h = 0; h < x->deal->hosts; h++) {
        x->pieces[h] = co_deal_pieces(x->deal, cut, h, list);
        x->before[h] = before;
        before += h == x->deal->me ? 0 : x->pieces[h];
    }
    for (size_t c = 0; c < x->map.chunks; c++) {
        CO_TRY(post_chunk(x, c));
        if (x->missing[c] == 0)
            co_mark_set(&x->map.here[c], turn, 1); /* nobody else is in the view */
    }
    return CO_OK;
}

static co_err send_pieces(co_exchange *x, size_t c, int owner)
{
    size_t lo, len = span(&x->map, c, &lo) * sizeof(float);
    int to = x->deal->id[owner], n = x->pieces[x->deal->me];

    for (int i = 0; i < n; i++) {
        co_tag tag = tag_of(x, CO_MSG_PIECE, i, c);
        CO_TRY(co_link_send(x->link, to, &tag, x->map.outbox + (size_t)i * x->map.count + lo, len));
    }
    if (n)
        return CO_OK;
    co_tag tag = tag_of(x, CO_MSG_PIECE, NO_PIECE, c);
    return co_link_send(x->link, to, &tag, x->map.outbox, 0);
}

static co_err send_sum(co_exchange *x, size_t c)
{
    size_t lo, len = span(&x->map, c, &lo) * sizeof(float);
    co_tag tag = tag_of(x, CO_MSG_SUM, 0, c);

    for (int h = 0; h < x->deal->hosts; h++)
        if (h != x->deal->me)
            CO_TRY(co_link_send(x->link, x->deal->id[h], &tag, x->map.sum + lo, len));
    return CO_OK;
}

co_err co_exchange_turn(co_exchange *x)
{
    for (size_t c = 0; c < x->map.chunks; c++) {
        int owner = co_deal_owner(x->deal, c, x->map.chunks);
        bool own = owner == x->deal->me;
        const co_claim *done = own ? &x->map.summed[c] : &x->map.pieced[c];
        if (x->sent[c] || !co_claim_is_done(done, x->turn))
            continue;
        x->sent[c] = 1;
        x->unsent--;
        CO_TRY(own ? send_sum(x, c) : send_pieces(x, c, owner));
    }
    return CO_OK;
}

bool co_exchange_sent(const co_exchange *x)
{
    return x->unsent == 0;
}

bool co_exchange_took(co_exchange *x, const co_tag *tag)
{
    bool mine = tag->view == x->deal->view && tag->unit == x->unit && tag->chunk < x->map.chunks &&
                (tag->kind == CO_MSG_PIECE || tag->kind == CO_MSG_SUM);

    if (!mine || x->missing[tag->chunk] == 0 || --x->missing[tag->chunk] > 0)
        return false;
    co_mark_set(&x->map.here[tag->chunk], x->turn, 1);
    return true;
}
