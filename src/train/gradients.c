/* gradients.c -- logger.gradients: how the elements of a step's gradient are spread.
 *
 * At every N-th step, whoever measures a chunk of the sum counts its elements too, by sign, exponent and
 * the first bit behind the point. Each stretch of a parameter that lies in one chunk has a place of its
 * own in the arena, which only the holder of that chunk's claim writes. A rank that dies while it counts
 * is followed by one that counts the stretch again. So the counts do not depend on who worked or died,
 * and nothing of the step depends on the counts.
 *
 * There is one set of places. The supervisor reads it with the result of the step, and no rank begins the
 * next such step before that (rank.c).
 *
 * The histogram has 64 buckets. Their edges are 1, 1.5, 2, 3, 4, 6 ... times a power of two: for each
 * sign 31 buckets down from the largest element, and one from there to zero. Counting costs one pass over
 * the sum, at those steps alone. Gradients of row-sparse tables are not counted.
 */
#include "train/gradients_int.h"

#include <math.h>
#include <string.h>

/* Classes [0, FINITE) of each sign are finite numbers; OCTAVES: half octaves, the buckets of a side but
 * the one at 0. */
enum { SIGN = GRADIENT_CLASSES / 2, FINITE = SIGN - 2, SHIFT = 22, BIAS = 127, OCTAVES = CO_BUCKETS / 2 - 1 };

/* Entry i's stretch in chunk c. Dense entries lie in the order of their numbers, so along the state
 * either i or c rises from one stretch to the next, and no two have the same sum. */
static size_t place_of(int i, size_t c)
{
    return (size_t)i + c;
}

size_t gradients_bytes(const co_plan *plan)
{
    return plan->spec.gradients_every > 0 ? ((size_t)plan->layout->n + plan->chunks) * sizeof(gradient_part)
                                          : 0;
}

static bool is_counted(const co_plan *plan, int i)
{
    const co_entry *entry = &plan->layout->entry[i];

    return entry->kind == CO_KIND_PARAM && !entry->sparse && !plan->recipe.rule[i].frozen && entry->count > 0;
}

static void count_part(gradient_part *part, const float *x, size_t n)
{
    *part = (gradient_part){.least = INFINITY, .most = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        part->count[bits >> SHIFT]++;
        if ((bits >> SHIFT) % SIGN >= FINITE)
            continue;
        part->least = x[i] < part->least ? x[i] : part->least;
        part->most = x[i] > part->most ? x[i] : part->most;
        part->sum += (double)x[i];
        part->squares += (double)x[i] * (double)x[i];
    }
}

void gradients_count(const co_plan *plan, gradient_part *parts, const float *sum, size_t c, size_t lo, size_t hi)
{
    for (int i = 0; i < plan->layout->n; i++) {
        const co_entry *entry = &plan->layout->entry[i];
        size_t from = entry->offset > lo ? entry->offset : lo;
        size_t to = entry->offset + entry->count < hi ? entry->offset + entry->count : hi;
        if (from < to && is_counted(plan, i))
            count_part(&parts[place_of(i, c)], sum + (from - lo), to - from);
    }
}

/* --- reading -------------------------------------------------------------------------------------------- */
/* The class of the largest finite element. */
static int top_class(const int64_t count[GRADIENT_CLASSES])
{
    int top = FINITE - 1;

    while (top > OCTAVES + 1 && count[top] == 0 && count[SIGN + top] == 0)
        top--;
    return top;
}

/* The smallest number of that class, or of a larger one. */
static double class_edge(int class)
{
    return ldexp(class % 2 ? 1.5 : 1, class / 2 - BIAS);
}

/* Bucket j of a side, counted from zero: 0 reaches from zero to the first half octave, OCTAVES is the
 * largest. */
static void fill_buckets(co_histogram *out, const int64_t count[GRADIENT_CLASSES], double inv)
{
    int top = top_class(count), middle = CO_BUCKETS / 2;

    out->edge[middle] = 0;
    for (int j = 0; j <= OCTAVES; j++) {
        double edge = class_edge(top - OCTAVES + 1 + j) * inv;
        out->edge[middle + 1 + j] = edge;
        out->edge[middle - 1 - j] = -edge;
    }
    for (int class = 0; class < FINITE; class ++) {
        int j = class - (top - OCTAVES);
        j = j < 0 ? 0 : j;
        if (j > OCTAVES)
            break; /* no finite element is larger */
        out->count[middle + j] += count[class];
        out->count[middle - 1 - j] += count[SIGN + class];
    }
}

bool gradients_read(const co_plan *plan, const gradient_part *parts, int i, double count, co_histogram *out)
{
    const co_entry *entry = &plan->layout->entry[i];
    int64_t all[GRADIENT_CLASSES] = {0};
    double inv = 1 / count, least = INFINITY, most = -INFINITY;

    if (!is_counted(plan, i) || !(count > 0))
        return false;
    *out = (co_histogram){.name = entry->name};
    for (size_t c = entry->offset / plan->chunk; c <= (entry->offset + entry->count - 1) / plan->chunk; c++) {
        const gradient_part *part = &parts[place_of(i, c)];
        for (int k = 0; k < GRADIENT_CLASSES; k++)
            all[k] += part->count[k];
        out->sum += part->sum * inv;
        out->squares += part->squares * inv * inv;
        least = fmin(least, (double)part->least);
        most = fmax(most, (double)part->most);
    }
    for (int k = FINITE; k < SIGN; k++)
        out->not_finite += all[k] + all[SIGN + k];
    out->num = (int64_t)entry->count - out->not_finite;
    out->least = out->num ? least * inv : 0;
    out->most = out->num ? most * inv : 0;
    fill_buckets(out, all, inv);
    return true;
}
