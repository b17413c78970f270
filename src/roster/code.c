/* code.c -- the join code as bytes and as text.
 *
 *     byte 0      version 0 (1 bit), has a token (1), addresses less one (2), which of them are IPv6 (4)
 *     bytes 1, 2  the port, high byte first
 *     then        the addresses, 4 or 16 bytes each; the token's 16 bytes
 *
 * The digits (net/base32.c) with their two check digits are cut into groups of four. The fifth character
 * of a group is g + 1 d0 + 2 d1 + 4 d2 + 8 d3 in the field of 32 elements (x^5 + x^2 + 1; the weights are
 * 1, x, x^2, x^3), g the group's number. A wrong digit changes it, since no weight is zero; so do two that
 * change places, since no two weights are equal. The last group may be short.
 */
#include "roster/code.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum {
    HEAD = 3,
    BYTES_LEAST = HEAD + 4,
    BYTES_MOST = HEAD + 16 * CO_CODE_ADDRS + 16,
    DIGITS_MOST = CO_BASE32_DIGITS(BYTES_MOST),
    GROUP = 4, /* digits of a group, before its check */
    TYPED_MOST = DIGITS_MOST + (DIGITS_MOST + GROUP - 1) / GROUP
};

static unsigned times_x(unsigned a)
{
    return (a << 1 ^ (a & 16 ? 37 : 0)) & 31;
}

static unsigned group_check(unsigned group, const uint8_t *digit, int n)
{
    unsigned sum = (group + 1) & 31;

    for (int i = 0; i < n; i++) {
        unsigned d = digit[i];
        for (int k = 0; k < i; k++)
            d = times_x(d);
        sum ^= d;
    }
    return sum;
}

static bool is_v6(const co_addr *a)
{
    return a->sa.sa_family == AF_INET6;
}

static size_t to_bytes(uint8_t out[BYTES_MOST], const co_code *c)
{
    size_t len = HEAD;

    out[0] = (uint8_t)((c->has_token ? 64 : 0) | (c->n - 1) << 4);
    out[1] = (uint8_t)(c->port >> 8);
    out[2] = (uint8_t)c->port;
    for (int i = 0; i < c->n; i++) {
        size_t n = is_v6(&c->at[i]) ? 16 : 4;
        if (n == 16)
            out[0] |= (uint8_t)(1 << i);
        memcpy(out + len, n == 16 ? (const void *)&c->at[i].v6.sin6_addr : &c->at[i].v4.sin_addr, n);
        len += n;
    }
    if (c->has_token) {
        memcpy(out + len, c->token.bits, sizeof c->token.bits);
        len += sizeof c->token.bits;
    }
    return len;
}

void co_code_text(char out[CO_CODE_TEXT], const co_code *c)
{
    uint8_t bytes[BYTES_MOST], digit[DIGITS_MOST];
    size_t len = to_bytes(bytes, c);
    int n = (int)CO_BASE32_DIGITS(len);

    co_base32_write(digit, bytes, len);
    for (int at = 0; at < n; at += GROUP) {
        int k = n - at < GROUP ? n - at : GROUP;
        for (int i = 0; i < k; i++)
            *out++ = co_base32_letter(digit[at + i]);
        *out++ = co_base32_letter(group_check((unsigned)(at / GROUP), digit + at, k));
        *out++ = at + GROUP < n ? '-' : '\0';
    }
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(digit, sizeof digit);
}

/* How many bytes a code with this first byte has; 0: no code begins with it. */
static size_t bytes_of(unsigned head)
{
    int n = (int)(head >> 4 & 3) + 1;
    size_t len = HEAD + (head & 64 ? 16 : 0);

    for (int i = 0; i < n; i++)
        len += head >> i & 1 ? 16 : 4;
    return head & 128 || (head & 15) >> n ? 0 : len;
}

static co_err from_bytes(co_code *out, const uint8_t *bytes)
{
    co_code c = {.port = bytes[1] << 8 | bytes[2], .n = (bytes[0] >> 4 & 3) + 1, .has_token = bytes[0] & 64};
    const uint8_t *at = bytes + HEAD;

    if (!c.port)
        return co_fail(CO_EINPUT, "the code has no port in it; copy it again");
    for (int i = 0; i < c.n; i++) {
        bool v6 = bytes[0] >> i & 1;
        c.at[i].sa.sa_family = v6 ? AF_INET6 : AF_INET;
        memcpy(v6 ? (void *)&c.at[i].v6.sin6_addr : &c.at[i].v4.sin_addr, at, v6 ? 16 : 4);
        at += v6 ? 16 : 4;
    }
    if (c.has_token)
        memcpy(c.token.bits, at, sizeof c.token.bits);
    *out = c;
    return CO_OK;
}

/* Characters to digits, group by group. */
static co_err take_digits(uint8_t digit[DIGITS_MOST], int *n, const char *text)
{
    uint8_t typed[TYPED_MOST];
    int all = 0;

    for (; *text; text++) {
        if (*text == '-' || isspace((unsigned char)*text))
            continue;
        int v = co_base32_digit(*text);
        if (v < 0)
            return co_fail(CO_EINPUT,
                           "the code has a mistake in group %d: a character that no code has; compare it "
                           "with the host's screen",
                           all / (GROUP + 1) + 1);
        if (all == TYPED_MOST)
            return co_fail(CO_EINPUT, "the code is too long: more than %d letters and digits", TYPED_MOST);
        typed[all++] = (uint8_t)v;
    }
    *n = 0;
    for (int at = 0; at < all; at += GROUP + 1) {
        int k = all - at < GROUP + 1 ? all - at - 1 : GROUP;
        unsigned group = (unsigned)(at / (GROUP + 1));
        if (k < 1 || group_check(group, typed + at, k) != typed[at + k])
            return co_fail(CO_EINPUT, "the code has a mistake in group %u; compare it with the host's screen",
                           group + 1);
        memcpy(digit + *n, typed + at, (size_t)k);
        *n += k;
    }
    explicit_bzero(typed, sizeof typed);
    return CO_OK;
}

co_err co_code_parse(co_code *out, const char *text)
{
    uint8_t digit[DIGITS_MOST], bytes[BYTES_MOST];
    int n = 0;
    co_err err = take_digits(digit, &n, text);

    if (err)
        return err;
    if (n < 2)
        return co_fail(CO_EINPUT, "the code is cut off: it has %d of its groups", n > 0);
    size_t len = bytes_of((unsigned)(digit[0] << 3 | digit[1] >> 2));
    if (len == 0)
        return co_fail(CO_EINPUT, "this is not a join code, or it is from a newer version of cohort");
    int want = (int)CO_BASE32_DIGITS(len);
    if (n != want)
        return co_fail(CO_EINPUT, "the code is %s: it has %d groups, not %d",
                       n < want ? "cut off" : "too long", (n + GROUP - 1) / GROUP, (want + GROUP - 1) / GROUP);
    if (!co_base32_read(bytes, len, digit))
        err = co_fail(CO_EINPUT, "the code has a mistake in it; compare it with the host's screen");
    else
        err = from_bytes(out, bytes);
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(digit, sizeof digit);
    return err;
}

/* --- from and to a meeting point ------------------------------------------------------------------------ */
/* Adds a numeric address that is not there yet. */
static void add_number(co_code *c, const char *text)
{
    co_addr a = {.v4 = {.sin_family = AF_INET}};

    if (c->n == CO_CODE_ADDRS)
        return;
    if (inet_pton(AF_INET, text, &a.v4.sin_addr) != 1) {
        a = (co_addr){.v6 = {.sin6_family = AF_INET6}};
        if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) != 1)
            return;
    }
    for (int i = 0; i < c->n; i++)
        if (co_addr_same_host(&c->at[i], &a))
            return;
    c->at[c->n++] = a;
}

/* Adds the addresses of `host`, which the user gave: a numeric address, or a name that may have several. */
static void add_given(co_code *c, const char *host)
{
    co_patience p = co_patience_s(5);
    co_addr found[CO_CODE_ADDRS];
    char text[CO_NAME_MOST];
    int n = 0;

    if (!*host || co_net_resolve(found, CO_CODE_ADDRS, &n, host, 0, &p))
        return;
    for (int i = 0; i < n; i++)
        if (!co_addr_is_loopback(&found[i])) { /* /etc/hosts often maps the host's own name to 127.0.1.1 */
            co_addr_text(text, sizeof text, &found[i]);
            add_number(c, text);
        }
}

/* Adds our address on the default route, from which packets to the internet leave. Nothing is sent. */
static void add_default_route(co_code *c, const char *anywhere)
{
    co_code far = {0};
    co_addr mine;
    char text[CO_NAME_MOST];

    add_number(&far, anywhere);
    if (co_net_route(&mine, &far.at[0]) || co_addr_is_loopback(&mine))
        return;
    co_addr_text(text, sizeof text, &mine);
    add_number(c, text);
}

co_err co_code_of(co_code *out, const co_meet *where)
{
    co_code c = {0};
    co_endpoint at;
    char mine[1024];

    CO_TRY(co_endpoint_parse(&at, where->endpoint));
    c.port = at.port;
    c.has_token = *where->token;
    if (c.has_token)
        CO_TRY(co_token_parse(&c.token, where->token));
    add_given(&c, where->advertise);
    add_given(&c, at.host);
    add_number(&c, where->listen);
    if (!*where->listen) {
        add_default_route(&c, "192.0.2.1");
        add_default_route(&c, "2001:db8::1");
        co_addr_mine(mine, sizeof mine);
        for (char *next, *word = mine; word && *word; word = next) {
            if ((next = strchr(word, ',')))
                *next++ = '\0';
            add_number(&c, word);
        }
        if (c.n == 0) /* there is no network, but processes on this machine may still join */
            add_number(&c, "127.0.0.1");
    }
    if (c.n == 0)
        return co_fail(CO_EINPUT, "this host has no address to put into a join code: is its network up?");
    co_errclear();
    *out = c;
    return CO_OK;
}

void co_code_meet(co_meet *where, const co_code *c)
{
    char text[CO_NAME_MOST];
    size_t n = 0;

    where->role = CO_MEET_JOIN;
    where->insecure = !c->has_token;
    where->also[0] = '\0';
    if (c->has_token)
        co_token_text(where->token, &c->token);
    for (int i = 0; i < c->n; i++) {
        co_addr_text(text, sizeof text, &c->at[i]);
        if (i == 0)
            co_endpoint_text(where->endpoint, sizeof where->endpoint, text, c->port);
        else if (n + strlen(text) + 2 <= sizeof where->also)
            n += (size_t)snprintf(where->also + n, sizeof where->also - n, "%s%s", n ? "," : "", text);
    }
}
