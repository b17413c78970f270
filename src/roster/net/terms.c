/* terms.c -- hosts whose command lines do not agree: the message on both sides has both values and what to
 * type.
 *
 * One row per thing that must be equal. Side a keeps the roster, side b wants to join.
 */
#include "roster/net/frame_int.h"

#include <stdio.h>
#include <string.h>

static void run_id(char *out, size_t size, const co_terms *t)
{
    snprintf(out, size, "--rdzv-id=%.127s", t->run_id);
}

static void nnodes(char *out, size_t size, const co_terms *t)
{
    if (t->min_hosts == t->max_hosts)
        snprintf(out, size, "--nnodes=%d", t->max_hosts);
    else
        snprintf(out, size, "--nnodes=%d:%d", t->min_hosts, t->max_hosts);
}

static void program(char *out, size_t size, const co_terms *t)
{
    snprintf(out, size, "the program %.240s", t->program);
}

static void version(char *out, size_t size, const co_terms *t)
{
    snprintf(out, size, "cohort %.31s", t->version);
}

static void kind(char *out, size_t size, const co_terms *t)
{
    snprintf(out, size, t->views ? "a training of cohort's own" : "a program of its own");
}

static bool same_kind(const co_terms *a, const co_terms *b)
{
    return a->views == b->views;
}

static bool same_version(const co_terms *a, const co_terms *b)
{
    return strcmp(a->version, b->version) == 0;
}

static bool same_run_id(const co_terms *a, const co_terms *b)
{
    return strcmp(a->run_id, b->run_id) == 0;
}

static bool same_nnodes(const co_terms *a, const co_terms *b)
{
    return a->min_hosts == b->min_hosts && a->max_hosts == b->max_hosts;
}

static bool same_program(const co_terms *a, const co_terms *b)
{
    return strcmp(a->program, b->program) == 0;
}

static const struct {
    bool (*same)(const co_terms *a, const co_terms *b);
    void (*say)(char *out, size_t size, const co_terms *t); /* for people */
    const char *advice;
} rows[] = {
    {same_version, version, "Install the same version of cohort on both."},
    {same_run_id, run_id,
     "Two jobs share this endpoint: give both hosts the same --rdzv-id, or one of the jobs another port."},
    {same_nnodes, nnodes, "Count all hosts of the job, this one too, and give every host the same --nnodes: "},
    {same_program, program, "Every host must run the same program."},
    {same_kind, kind, "Every host must be started by the same command."},
};

bool terms_agree(char *to_b, char *to_a, size_t size, const co_terms *a, const co_terms *b,
                 const host_name *at_a, const host_name *at_b)
{
    char says_a[300], says_b[300], more[128];

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        if (rows[i].same(a, b))
            continue;
        rows[i].say(says_a, sizeof says_a, a);
        rows[i].say(says_b, sizeof says_b, b);
        more[0] = '\0';
        if (rows[i].say == nnodes) { /* the larger number is most likely meant */
            char line[64];
            nnodes(line, sizeof line, a->max_hosts >= b->max_hosts ? a : b);
            snprintf(more, sizeof more, "end the one with the other value and start it with %s.", line);
        }
        snprintf(to_b, size, "host %s (%s) refuses this host: it was started with %s, this one with %s. %s%s",
                 at_a->name, at_a->addr, says_a, says_b, rows[i].advice, more);
        snprintf(to_a, size, "host %s (%s) was refused: it was started with %s, this one with %s. %s%s",
                 at_b->name, at_b->addr, says_b, says_a, rows[i].advice, more);
        return false;
    }
    return true;
}
