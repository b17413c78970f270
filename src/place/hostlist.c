/* hostlist.c -- Slurm's short forms: "gpu[001-003,7],login" for names, "2(x3),1" for tasks on each node.
 *
 * A name may have several brackets, of which the last counts fastest, and text after them. Leading zeros set
 * the width. No list costs more than HOSTS_MOST names: a range that is too long is refused before it is
 * expanded.
 */
#include "place/place_int.h"

#include <stdio.h>
#include <string.h>

enum { BRACKETS_MOST = 8, DIGITS_MOST = 9 };

typedef struct walk {
    char name[CO_HOST_NAME];
    int n, index;
    char *out;
    size_t size;
    bool found;
} walk;

static co_err bad(const char *why)
{
    return co_fail(CO_EINPUT, "the list of nodes cannot be read: %s", why);
}

/* A number of 1 to 9 digits; *len: how many. -1: no digits, or too many. */
static long number(const char *at, const char *end, int *len)
{
    long n = 0;

    for (*len = 0; at + *len < end && at[*len] >= '0' && at[*len] <= '9'; ++*len) {
        if (*len >= DIGITS_MOST)
            return -1;
        n = n * 10 + (at[*len] - '0');
    }
    return *len ? n : -1;
}

static co_err emit(walk *w, size_t have)
{
    if (have == 0 || have >= w->size)
        return bad(have ? "a name is too long" : "a name is empty");
    if (w->n >= HOSTS_MOST)
        return bad("more than 65536 names");
    if (w->n++ == w->index) {
        memcpy(w->out, w->name, have);
        w->out[have] = '\0';
        w->found = true;
    }
    return CO_OK;
}

static co_err expand(walk *w, const char *at, const char *end, size_t have, int depth);

/* The values of one bracket, [at, close): "001-003,7". */
static co_err bracket(walk *w, const char *at, const char *close, const char *end, size_t have, int depth)
{
    while (at < close) {
        int width, len;
        long lo = number(at, close, &width), hi = lo;
        if (lo < 0)
            return bad("a bracket holds something other than numbers");
        at += width;
        if (at < close && *at == '-') {
            hi = number(at + 1, close, &len);
            at += 1 + len;
        }
        if (hi < lo || hi - lo >= HOSTS_MOST || (at < close && *at != ','))
            return bad("a range in brackets is not LOW-HIGH, or too long");
        for (long v = lo; v <= hi; v++) {
            int n = snprintf(w->name + have, sizeof w->name - have, "%0*ld", width, v);
            if (n < 0 || have + (size_t)n >= sizeof w->name)
                return bad("a name is too long");
            CO_TRY(expand(w, close + 1, end, have + (size_t)n, depth + 1));
        }
        if (at < close && ++at == close)
            return bad("a comma ends a bracket");
    }
    return CO_OK;
}

static co_err expand(walk *w, const char *at, const char *end, size_t have, int depth)
{
    for (; at < end && *at != '['; at++) {
        if (*at == ']' || (unsigned char)*at <= ' ' || *at == 127)
            return bad("a stray bracket, blank or control character");
        if (have + 1 >= sizeof w->name)
            return bad("a name is too long");
        w->name[have++] = *at;
    }
    if (at == end)
        return emit(w, have);
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (!close || close == at + 1 || depth >= BRACKETS_MOST)
        return bad("a bracket is open, empty or one too many");
    return bracket(w, at + 1, close, end, have, depth);
}

co_err hostlist_get(char *out, size_t size, int *n, const char *list, int index)
{
    char name[CO_HOST_NAME] = "";
    walk w = {.index = index, .out = name, .size = size < sizeof name ? size : sizeof name};

    for (const char *at = list;;) {
        const char *end = at;
        for (int inside = 0; *end && (inside || *end != ','); end++)
            inside = *end == '[' ? 1 : *end == ']' ? 0 : inside;
        CO_TRY(expand(&w, at, end, 0, 0));
        if (!*end)
            break;
        at = end + 1;
    }
    if (!w.found)
        return co_fail(CO_EINPUT, "the list of nodes has %d names, number %d is none of them", w.n, index);
    snprintf(out, size, "%s", name);
    if (n)
        *n = w.n;
    return CO_OK;
}

co_err tasks_parse(int *here, int *most, int *nodes, const char *text, int node)
{
    const char *at = text, *end = text + strlen(text);
    int at_node = -1, max = 0, total = 0;

    while (at < end) {
        int len;
        long tasks = number(at, end, &len), times = 1;
        at += len;
        if (tasks >= 0 && end - at > 2 && at[0] == '(' && at[1] == 'x') {
            times = number(at + 2, end, &len);
            at += 2 + len;
            times = at < end && *at == ')' ? times : -1;
            at++;
        }
        if (tasks < 1 || tasks > HOSTS_MOST || times < 1 || times > HOSTS_MOST - total ||
            (at < end && *at != ',') || at + 1 == end)
            return co_fail(CO_EINPUT, "SLURM_STEP_TASKS_PER_NODE=%.60s cannot be read", text);
        if (node >= total && node < total + times)
            at_node = (int)tasks;
        max = tasks > max ? (int)tasks : max;
        total += (int)times;
        at++;
    }
    if (at_node < 0)
        return co_fail(CO_EINPUT, "SLURM_STEP_TASKS_PER_NODE=%.60s says nothing about node %d", text, node);
    *here = at_node;
    *most = max;
    *nodes = total;
    return CO_OK;
}
