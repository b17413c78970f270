/* run_series.c -- the series of a run: points in order, bounded in number.
 *
 * Points are appended as they come. Those of a continued run repeat steps; then the series is sorted by its
 * key (the step, or for system/... the time), and of equal keys the last one stays. When a series is full, it
 * is thinned: the axis is cut into stretches of equal width, and each keeps its least, its greatest and its
 * first value that is not finite. The width doubles as the series grows, so all parts are equally fine. The
 * first and the last point stay.
 *
 * The order is exact as long as a series is not thinned. Afterwards a step that is recorded again may stand
 * beside its old value, if the old one was the least or the greatest of its stretch.
 *
 * Cost: O(1) a point, with a sort of the series once in about points_most / 2 points.
 */
#include "track/run_read_int.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { FIRST_ROOM = 64, LEAST_POINTS = 64, ALL_POINTS = 4 << 20 }; /* 100 MB in all */

static int64_t key_of(const series *s, const co_point *p)
{
    return s->shown.by_time && !isnan(p->t) ? (int64_t)(1000 * p->t) : p->step;
}

/* --- order ---------------------------------------------------------------------------------------------- */
/* Merges in[0..n) and in[n..m), both sorted, into out. Equal keys keep their order. */
static void merge(const series *s, co_point *out, const co_point *in, size_t n, size_t m)
{
    size_t a = 0, b = n;

    for (size_t k = 0; k < m; k++)
        out[k] = b >= m || (a < n && key_of(s, &in[a]) <= key_of(s, &in[b])) ? in[a++] : in[b++];
}

static void sort(series *s, co_point *spare)
{
    co_point *from = s->points, *to = spare;
    size_t n = s->shown.n;

    for (size_t run = 1; run < n; run *= 2) {
        for (size_t at = 0; at < n; at += 2 * run) {
            size_t both = n - at < 2 * run ? n - at : 2 * run;
            merge(s, to + at, from + at, both < run ? both : run, both);
        }
        co_point *swap = from;
        from = to;
        to = swap;
    }
    if (from != s->points)
        memcpy(s->points, from, n * sizeof *from);
}

/* Of points with the same key, the last one counts. */
static void drop_repeats(series *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->shown.n; i++) {
        bool last = i + 1 == s->shown.n || key_of(s, &s->points[i]) != key_of(s, &s->points[i + 1]);
        if (last)
            s->points[kept++] = s->points[i];
    }
    s->shown.n = kept;
}

static void settle(series *s, co_point *spare)
{
    if (!s->unsorted)
        return;
    sort(s, spare);
    drop_repeats(s);
    s->unsorted = false;
}

/* --- thinning ------------------------------------------------------------------------------------------- */
static uint64_t stretch_of(const series *s, const co_point *p)
{
    return ((uint64_t)key_of(s, p) ^ (UINT64_C(1) << 63)) / s->width;
}

/* Which of points[from..to) stay: indices in order, without repeats. At most three. */
static int choose(const series *s, size_t from, size_t to, size_t out[3])
{
    const co_point *p = s->points;
    size_t none = to, least = none, greatest = none, odd = none;
    int n = 0;

    for (size_t i = from; i < to; i++) {
        if (!isfinite(p[i].value)) {
            odd = odd == none ? i : odd;
            continue;
        }
        least = least == none || p[i].value < p[least].value ? i : least;
        greatest = greatest == none || p[i].value > p[greatest].value ? i : greatest;
    }
    for (size_t i = from; i < to; i++)
        if (i == least || i == greatest || i == odd)
            out[n++] = i;
    return n;
}

static void thin_once(series *s)
{
    size_t kept = 0, n = s->shown.n, pick[3];
    co_point first = s->points[0], last = s->points[n - 1];

    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && stretch_of(s, &s->points[to]) == stretch_of(s, &s->points[from]);)
            to++;
        int picked = choose(s, from, to, pick);
        for (int i = 0; i < picked; i++)
            s->points[kept++] = s->points[pick[i]];
    }
    if (key_of(s, &s->points[0]) != key_of(s, &first)) {
        memmove(s->points + 1, s->points, (kept < n ? kept : n - 1) * sizeof first);
        s->points[0] = first;
        kept = kept < n ? kept + 1 : n;
    }
    if (key_of(s, &s->points[kept - 1]) != key_of(s, &last)) {
        kept = kept < n ? kept + 1 : n;
        s->points[kept - 1] = last;
    }
    s->shown.n = kept;
    s->shown.thinned = true;
}

/* Half of the room is free afterwards, or nearly: with the old width at first, then with wider ones. */
static void make_room(series *s, co_point *spare, size_t most)
{
    settle(s, spare);
    if (s->width && s->shown.n > most / 2)
        thin_once(s);
    while (s->shown.n > most * 3 / 4 && s->width < UINT64_C(1) << 62) {
        s->width = s->width ? 2 * s->width : 2;
        thin_once(s);
        if (s->shown.n > most * 3 / 4)
            continue;
        s->width *= 2; /* once more, so that this is not needed again soon */
        thin_once(s);
    }
}

/* --- the table ------------------------------------------------------------------------------------------ */
static size_t slot_of(const char *name, size_t len)
{
    return (size_t)(co_fnv1a64(name, len) % NAME_SLOTS);
}

static bool is_named(const series *s, const char *name, size_t len)
{
    return strncmp(s->shown.name, name, len) == 0 && s->shown.name[len] == '\0';
}

series *series_find(const series_table *t, const char *name, size_t len)
{
    for (size_t at = slot_of(name, len); t->slots && t->slots[at]; at = (at + 1) % NAME_SLOTS)
        if (is_named(&t->all[t->slots[at] - 1], name, len))
            return &t->all[t->slots[at] - 1];
    return NULL;
}

static co_err open_table(series_table *t)
{
    t->slots = co_array(NAME_SLOTS, sizeof *t->slots);
    t->spare = t->slots ? co_array(t->points_most, sizeof *t->spare) : NULL;
    if (t->spare)
        return CO_OK;
    co_free(t->slots);
    t->slots = NULL;
    return CO_ENOMEM;
}

static co_err new_series(series_table *t, const char *name, size_t len, series **out)
{
    if (!t->slots)
        CO_TRY(open_table(t));
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 32;
        series *more = co_realloc(t->all, room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        t->all = more;
        t->room = room;
    }
    series *s = &t->all[t->n];
    char *own = co_sprintf("%.*s", (int)len, name);
    if (!own)
        return CO_ENOMEM;
    *s = (series){.shown = {.name = own, .by_time = strncmp(own, "system/", 7) == 0}};
    size_t at = slot_of(name, len);
    while (t->slots[at])
        at = (at + 1) % NAME_SLOTS;
    t->slots[at] = (uint16_t)++t->n;
    *out = s;
    return CO_OK;
}

/* Many names: each gets fewer points. */
static void lower_the_limit(series_table *t)
{
    while (t->points > ALL_POINTS && t->points_most > LEAST_POINTS) {
        t->points_most = t->points_most / 2 > LEAST_POINTS ? t->points_most / 2 : LEAST_POINTS;
        for (size_t i = 0; i < t->n; i++) {
            series *s = &t->all[i];
            if (s->room <= t->points_most)
                continue;
            make_room(s, t->spare, t->points_most);
            co_point *less = co_realloc(s->points, t->points_most * sizeof *less);
            if (!less)
                return; /* a smaller piece was refused: the larger one stays */
            s->points = less;
            t->points -= s->room - t->points_most;
            s->room = t->points_most;
        }
    }
}

static co_err room_for_one(series_table *t, series *s)
{
    if (s->shown.n < s->room)
        return CO_OK;
    if (s->room >= t->points_most) {
        make_room(s, t->spare, t->points_most);
        return CO_OK;
    }
    size_t room = s->room ? 2 * s->room : FIRST_ROOM;
    room = room < t->points_most ? room : t->points_most;
    co_point *more = co_realloc(s->points, room * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    t->points += room - s->room;
    s->points = more;
    s->room = room;
    lower_the_limit(t);
    if (s->shown.n == s->room)
        make_room(s, t->spare, s->room);
    return CO_OK;
}

co_err series_add(series_table *t, const scalar *in)
{
    series *s = series_find(t, in->name, in->name_len);

    if (!s && (t->n == NAMES_MOST || in->name_len > 1024))
        return CO_OK;
    if (!s)
        CO_TRY(new_series(t, in->name, in->name_len, &s));
    CO_TRY(room_for_one(t, s));
    s->shown.lines++;
    if (s->shown.n && key_of(s, &in->at) <= key_of(s, &s->points[s->shown.n - 1])) {
        if (key_of(s, &in->at) == key_of(s, &s->points[s->shown.n - 1]))
            s->shown.n--; /* the same step at once: replaced in its place */
        else
            s->unsorted = true;
    }
    s->points[s->shown.n++] = in->at;
    return CO_OK;
}

void series_settle(series_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        settle(&t->all[i], t->spare);
        t->all[i].shown.point = t->all[i].points;
    }
}

void series_fini(series_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        co_free((char *)t->all[i].shown.name);
        co_free(t->all[i].points);
    }
    co_free(t->all);
    co_free(t->slots);
    co_free(t->spare);
    *t = (series_table){.points_most = t->points_most};
}
