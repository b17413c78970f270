/* words.c -- parses text from outside and checks it before anybody uses it: the card, which the first
 * launcher sends to the others; the greeting of a launcher in the lobby; the answers of PMI and scontrol.
 *
 * A card is endpoint|also|token. It has no spaces and no '=', which PMI-1 cannot carry in a value.
 */
#include "place/place_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fits(const char *s, const char *allowed)
{
    for (; *s; s++) {
        bool plain = (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
        if (!plain && !strchr(allowed, *s))
            return false;
    }
    return true;
}

static co_err check(const card *c)
{
    co_endpoint at;
    co_token token;

    if (!fits(c->endpoint, ".-_:[]%") || !fits(c->also, ".:,%") || !fits(c->token, "-"))
        return co_fail(CO_EFORMAT, "the first launcher's card has characters that do not belong there");
    if (co_endpoint_parse(&at, c->endpoint) || !*at.host || at.port <= 0)
        return co_fail(CO_EFORMAT, "the first launcher's card names no endpoint");
    if (*c->token && co_token_parse(&token, c->token))
        return co_fail(CO_EFORMAT, "the first launcher's card has a malformed token");
    return CO_OK;
}

co_err card_text(char out[CARD_TEXT], const card *c)
{
    CO_TRY(check(c));
    snprintf(out, CARD_TEXT, "%s|%s|%s", c->endpoint, c->also, c->token);
    return CO_OK;
}

/* Copies up to the next '|' or the end, and returns where that is; NULL: too long. */
static const char *take(char *out, size_t size, const char *at)
{
    size_t n = strcspn(at, "|");

    if (n >= size)
        return NULL;
    memcpy(out, at, n);
    out[n] = '\0';
    return at + n;
}

co_err card_parse(card *out, const char *text)
{
    card c = {0};
    const char *at = take(c.endpoint, sizeof c.endpoint, text);

    if (at && *at == '|')
        at = take(c.also, sizeof c.also, at + 1);
    else
        at = NULL;
    if (at && *at == '|')
        at = take(c.token, sizeof c.token, at + 1);
    else
        at = NULL;
    if (!at || *at)
        return co_fail(CO_EFORMAT, "the first launcher's card is not endpoint|addresses|token");
    CO_TRY(check(&c));
    *out = c;
    return CO_OK;
}

void lobby_greeting(char *out, size_t size, const char *run_id, int seat)
{
    snprintf(out, size, "cohort-lobby %s %d", run_id, seat);
}

bool lobby_greeted(int *seat, const char *text, const char *run_id, int seats)
{
    static const char head[] = "cohort-lobby ";
    size_t n = strlen(run_id), h = sizeof head - 1;
    char *end;

    if (strncmp(text, head, h) != 0 || strncmp(text + h, run_id, n) != 0 || text[h + n] != ' ')
        return false;
    const char *digits = text + h + n + 1;
    if (*digits < '1' || *digits > '9' || strlen(digits) > 6)
        return false;
    long who = strtol(digits, &end, 10);
    if (*end || who >= seats)
        return false;
    *seat = (int)who;
    return true;
}

bool pmi_value(char *out, size_t size, const char *line, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = line; *at;) {
        at += strspn(at, " ");
        size_t word = strcspn(at, " \n");
        if (word > n && strncmp(at, key, n) == 0 && at[n] == '=') {
            size_t len = word - n - 1;
            if (len >= size)
                return false;
            memcpy(out, at + n + 1, len);
            out[len] = '\0';
            return true;
        }
        at += word;
        if (*at == '\n')
            return false;
    }
    return false;
}

/* Parses "(0,1,2)" at *at and moves *at behind it. */
static bool triple(int of[3], const char **at)
{
    const char *c = *at;

    if (*c++ != '(')
        return false;
    for (int i = 0; i < 3; i++) {
        int digits = 0;
        for (of[i] = 0; *c >= '0' && *c <= '9' && digits < 7; digits++)
            of[i] = of[i] * 10 + (*c++ - '0');
        if (digits == 0 || *c++ != (i < 2 ? ',' : ')'))
            return false;
    }
    *at = c;
    return of[1] > 0 && of[2] > 0;
}

bool pmi_hosts(int *host, int n, const char *text)
{
    static const char head[] = "(vector";
    const char *first = text + sizeof head - 1;
    int r = 0, of[3];

    if (strncmp(text, head, sizeof head - 1) != 0 || *first != ',')
        return false;
    for (const char *at = first;;) { /* checks the whole text, even if the ranks need only a part of it */
        at++;
        if (!triple(of, &at))
            return false;
        for (int k = 0; k / of[2] < of[1] && r < n; k++)
            host[r++] = of[0] + k / of[2];
        if (*at == ',')
            continue;
        if (strcmp(at, ")") != 0)
            return false;
        if (r == n)
            return true;
        at = first;
    }
}

bool scontrol_value(char *out, size_t size, const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = text; (at = strstr(at, name)); at += n) {
        if (at > text && at[-1] != ' ' && at[-1] != '\n' && at[-1] != '\t')
            continue;
        const char *v = at + n + strspn(at + n, " ");
        if (*v != '=')
            continue;
        v += 1 + strspn(v + 1, " ");
        size_t len = strcspn(v, " \t\r\n");
        if (len == 0 || len >= size)
            return false;
        memcpy(out, v, len);
        out[len] = '\0';
        return true;
    }
    return false;
}
