/* Join codes as text: a code can be typed in several forms, every single mistake is detected, and text that
 * is not a code is refused. */
#include "roster/code.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "net/ns.h"

static const char *const forms[] = {"10.77.0.1", "10.77.0.1,192.168.4.7", "fd00::1:2", "10.0.0.1,fd00::1",
                                    "2001:db8::1,10.9.8.7,fd00::3,172.17.0.1"};

static co_code code_of(const char *addresses, bool token, uint64_t seed)
{
    co_code c = {.port = 29400 + (int)(seed % 1000), .has_token = token};
    char text[256];

    snprintf(text, sizeof text, "%s", addresses);
    for (char *next, *a = text; a; a = next) {
        if ((next = strchr(a, ',')))
            *next++ = '\0';
        bool v6 = strchr(a, ':');
        c.at[c.n].sa.sa_family = v6 ? AF_INET6 : AF_INET;
        CHECK(inet_pton(v6 ? AF_INET6 : AF_INET, a,
                        v6 ? (void *)&c.at[c.n].v6.sin6_addr : &c.at[c.n].v4.sin_addr) == 1,
              "%s", a);
        c.n++;
    }
    for (size_t i = 0; token && i < sizeof c.token.bits; i++)
        c.token.bits[i] = (uint8_t)test_u32(&seed);
    return c;
}

static bool same(const co_code *a, const co_code *b)
{
    bool is = a->port == b->port && a->n == b->n && a->has_token == b->has_token &&
              memcmp(&a->token, &b->token, sizeof a->token) == 0;

    for (int i = 0; is && i < a->n; i++)
        is = co_addr_same_host(&a->at[i], &b->at[i]);
    return is;
}

TEST(a_join_code_reads_back_however_it_is_typed)
{
    char text[CO_CODE_TEXT], typed[CO_CODE_TEXT];
    co_code back;

    for (size_t f = 0; f < CO_COUNT(forms); f++)
        for (int token = 0; token < 2; token++) {
            co_code c = code_of(forms[f], token, f * 7 + 1);
            size_t n = 0;
            co_code_text(text, &c);
            CHECK_OK(co_code_parse(&back, text));
            CHECK(same(&c, &back), "%s came back as another", forms[f]);
            for (const char *at = text; *at; at++)
                if (*at != '-')
                    typed[n++] = *at == '0' ? 'o' : *at == '1' ? 'L' : (char)tolower(*at);
            typed[n] = '\0';
            CHECK_OK(co_code_parse(&back, typed));
            CHECK(same(&c, &back), "%s came back as another from what was typed", forms[f]);
            test_note("%s%s: %zu characters", forms[f], token ? "" : ", no token", strlen(text));
        }
}

/* Whether `c` instead of text[at] is a mistake: a letter that reads as the same digit is not. */
static bool is_mistake(const char *text, int at, char c)
{
    return co_base32_digit(text[at]) != co_base32_digit(c);
}

TEST(every_single_wrong_character_of_a_join_code_is_found_in_its_group)
{
    char text[CO_CODE_TEXT], bad[CO_CODE_TEXT], group[32];
    co_code back;
    int tried = 0;

    for (size_t f = 0; f < CO_COUNT(forms); f++) {
        co_code c = code_of(forms[f], true, f + 99);
        co_code_text(text, &c);
        for (int i = 0; text[i]; i++)
            for (int ch = 33; ch < 127; ch++) {
                if (text[i] == '-' || ch == '-' || !is_mistake(text, i, (char)ch))
                    continue;
                memcpy(bad, text, sizeof bad);
                bad[i] = (char)ch;
                snprintf(group, sizeof group, "mistake in group %d", i / 6 + 1);
                CHECK_FAILS(co_code_parse(&back, bad), CO_EINPUT, group);
                CHECK(!test_contains(co_errmsg(), bad), "quoted: %s", co_errmsg());
                tried++;
            }
    }
    test_note("%d wrong characters", tried);
}

TEST(characters_and_groups_that_are_missing_double_or_in_the_wrong_place_are_found)
{
    char text[CO_CODE_TEXT], bad[2 * CO_CODE_TEXT];
    co_code back;

    for (size_t f = 0; f < CO_COUNT(forms); f++) {
        co_code c = code_of(forms[f], true, f + 5);
        co_code_text(text, &c);
        int n = (int)strlen(text);
        for (int i = 0; i < n; i++) {
            snprintf(bad, sizeof bad, "%.*s%s", i, text, text + i + 1);
            CHECK(text[i] == '-' || co_code_parse(&back, bad) == CO_EINPUT, "character %d is missing", i);
            snprintf(bad, sizeof bad, "%.*s%s", i + 1, text, text + i);
            CHECK(text[i] == '-' || co_code_parse(&back, bad) == CO_EINPUT, "character %d is double", i);
            memcpy(bad, text, (size_t)n + 1);
            bad[i] = text[i + 1];
            bad[i + 1] = text[i];
            CHECK(i + 1 == n || text[i] == '-' || text[i + 1] == '-' || !is_mistake(text, i, text[i + 1]) ||
                      co_code_parse(&back, bad) == CO_EINPUT,
                  "characters %d and %d have changed places", i, i + 1);
        }
        for (int g = 0; (g + 1) * 6 <= n; g++) {
            snprintf(bad, sizeof bad, "%.*s%s", g * 6, text, text + g * 6 + 6);
            CHECK(co_code_parse(&back, bad) == CO_EINPUT, "group %d is missing", g + 1);
            snprintf(bad, sizeof bad, "%.*s%s", g * 6, text, "");
            CHECK(co_code_parse(&back, bad) == CO_EINPUT, "cut off at group %d", g + 1);
        }
    }
}

TEST(no_join_code_is_refused_with_a_sentence)
{
    char text[CO_CODE_TEXT], *longer = malloc(100001);
    co_code c = code_of(forms[0], true, 1), back;
    uint64_t seed = 4;
    int passed = 0;

    CHECK_FAILS(co_code_parse(&back, ""), CO_EINPUT, "cut off");
    CHECK_FAILS(co_code_parse(&back, "hello, world"), CO_EINPUT, "mistake in group 2");
    memset(longer, 'A', 100000);
    longer[100000] = '\0';
    CHECK_FAILS(co_code_parse(&back, longer), CO_EINPUT, "too long");
    free(longer);
    co_token_text(text, &c.token); /* a token where the code belongs */
    CHECK_FAILS(co_code_parse(&back, text), CO_EINPUT, "mistake in group");
    for (int i = 0; i < 20000; i++) {
        int n = (int)(test_u32(&seed) % 150);
        for (int k = 0; k < n; k++)
            text[k] = (char)(test_u32(&seed) % 255 + 1);
        text[n] = '\0';
        passed += co_code_parse(&back, text) == CO_OK;
    }
    CHECK(passed == 0, "%d of 20000 random texts are codes", passed);
}

TEST(a_host_puts_its_reachable_addresses_into_its_code_the_default_routes_first)
{
    ns_lan lan = ns_open(1);
    co_meet where = {.endpoint = ":0"}, there = {0};
    co_code c;

    ns_sh(lan.host[0],
          "ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0 && ip link set docker0 up"
          " && ip link add wan0 type veth peer name wan1 && ip addr add 198.51.100.77/24 dev wan0 && ip link "
          "set wan0 up && ip link set wan1 up"
          " && ip route add default via 198.51.100.1 && ip addr add fd00:77::1/64 dev eth0 nodad");
    ns_enter(&lan, 0);
    CHECK_OK(co_meet_listen(&where));
    CHECK_OK(co_code_of(&c, &where));
    ns_leave(&lan);
    close(where.listener);
    co_code_meet(&there, &c);
    test_note("%s, also %s", there.endpoint, there.also);
    CHECK(strncmp(there.endpoint, "198.51.100.77:", 14) == 0, "%s", there.endpoint);
    CHECK(strcmp(there.also, "10.77.0.1,fd00:77::1,172.17.0.1") == 0, "%s", there.also);
    CHECK(strcmp(there.token, where.token) == 0 && *there.token && there.role == CO_MEET_JOIN, "the token");
}
