/* facts.c -- what must be the same on all hosts of a training: data, configuration, numerics
 * (co_terms.facts).
 *
 * The first host's object decides the order: the first of its keys that differs on the other host is named,
 * with both values, on both sides. Keys that only the other host has come last.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "roster/net/seat_int.h"

enum { SHOWN = 100 }; /* bytes of a value in a message */

co_err facts_check(const json_t *facts)
{
    const char *key;
    json_t *value;

    if (!json_is_object(facts))
        return co_fail(CO_EINPUT, "what must be the same on all hosts is not a JSON object");
    json_object_foreach((json_t *)facts, key, value)
    {
        if (!json_is_string(value))
            return co_fail(CO_EINPUT, "what must be the same on all hosts: %.100s is not a text", key);
    }
    return CO_OK;
}

co_err facts_parse(json_t **out, const char *text)
{
    json_t *facts = NULL;
    size_t len = text ? strlen(text) : 0;

    *out = NULL;
    if (!text)
        return CO_OK;
    if (len > FACTS_MOST)
        return co_fail(CO_EINPUT, "what must be the same on all hosts takes %zu bytes; %d are the limit", len,
                       FACTS_MOST);
    CO_TRY(co_json_parse(&facts, text, len, "facts"));
    co_err err = facts_check(facts);
    if (err)
        json_decref(facts);
    else
        *out = facts;
    return err;
}

int facts_slices(const json_t *facts)
{
    const char *text = co_json_str(facts, "slices");
    long long n;

    return text && co_str_to_i64(text, &n) && n >= 1 && n <= CO_MAX_SLICES ? (int)n : 1;
}

/* "has 0.1": a long value from a little before the place where the two differ. */
static void say(char *out, size_t size, const char *value, const char *other)
{
    char clean[SHOWN];
    size_t at = 0;

    if (!value) {
        snprintf(out, size, "does not have it");
        return;
    }
    while (other && value[at] && value[at] == other[at])
        at++;
    size_t from = at < SHOWN - 10 ? 0 : at - 10;
    co_utf8_clean(clean, sizeof clean, value + from);
    snprintf(out, size, "has %s%s%s", from ? "..." : "", *value ? clean : "nothing",
             strlen(value + from) >= SHOWN ? "..." : "");
}

static void differ(const server *srv, const seat *peer, const char *key, const char *mine, const char *theirs,
                   char *to_it, char *to_us, size_t size)
{
    char here[160], there[160], name[101], text[800];
    host_name me;

    co_utf8_clean(name, sizeof name, key);
    say(here, sizeof here, mine, theirs);
    say(there, sizeof there, theirs, mine);
    snprintf(me.name, sizeof me.name, "%s", srv->me);
    co_endpoint_text(me.addr, sizeof me.addr, peer->via, srv->at.port);
    snprintf(text, sizeof text, "%s is not the same: %.150s %s, %.150s %s", name, me.name, here,
             peer->who.name, there);
    snprintf(to_it, size, "host %.150s (%.60s) refuses this host: %s", me.name, me.addr, text);
    snprintf(to_us, size, "host %.150s (%.60s) was refused: %s", peer->who.name, peer->who.addr, text);
}

/* The first key of `a` whose value is another one, or missing, in `b`. */
static const char *first_difference(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)a, key, value)
    {
        const char *other = co_json_str(b, key);
        if (!other || strcmp(json_string_value(value), other) != 0)
            return key;
    }
    return NULL;
}

bool facts_agree(server *srv, const seat *peer, const json_t *theirs, char *to_it, char *to_us, size_t size)
{
    if (!srv->facts)
        return true;
    const char *key = first_difference(srv->facts, theirs);
    if (!key)
        key = first_difference(theirs, srv->facts);
    if (key)
        differ(srv, peer, key, co_json_str(srv->facts, key), co_json_str(theirs, key), to_it, to_us, size);
    return !key;
}
