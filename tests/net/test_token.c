/* Tokens as text: a new token reads back, a mistyped one is refused, and the token is removed from the
 * environment. */
#include "net/net.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

TEST(a_token_reads_back_however_it_is_typed)
{
    char text[CO_TOKEN_TEXT], typed[64];
    co_token t, back;

    for (int round = 0; round < 50; round++) {
        CHECK_OK(co_token_make(&t));
        co_token_text(text, &t);
        CHECK(strlen(text) == 34, "%zu letters", strlen(text));
        size_t n = 0;
        for (const char *at = text; *at; at++)
            if (*at != '-')
                typed[n++] = *at == '0' ? 'o' : *at == '1' ? 'L' : (char)(*at | (*at >= 'A' ? 0x20 : 0));
        typed[n] = '\0';
        CHECK_OK(co_token_parse(&back, text));
        CHECK(memcmp(&t, &back, sizeof t) == 0, "another token came back");
        CHECK_OK(co_token_parse(&back, typed));
        CHECK(memcmp(&t, &back, sizeof t) == 0, "another token came back from what was typed");
    }
}

TEST(a_mistyped_token_is_refused_without_quoting_it)
{
    static const co_token t = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
    char text[CO_TOKEN_TEXT];
    co_token back;
    int passed = 0, tried = 0;

    for (int i = 0; i < 34; i++)
        for (const char *other = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; *other; other++) {
            co_token_text(text, &t);
            if (text[i] == '-' || text[i] == *other)
                continue;
            text[i] = *other;
            tried++;
            if (co_token_parse(&back, text) == CO_OK)
                passed++;
            else
                CHECK(!strstr(co_errmsg(), text), "quoted: %s", co_errmsg());
        }
    CHECK(passed <= tried / 300, "%d of %d mistyped tokens passed", passed, tried);
    CHECK_FAILS(co_token_parse(&back, "ABCD"), CO_EINPUT, "4 letters and digits, not 28");
    CHECK_FAILS(co_token_parse(&back, "ABCD-!"), CO_EINPUT, "character that tokens do not use");
    co_token_text(text, &t);
    char longer[64];
    snprintf(longer, sizeof longer, "%s-2", text);
    CHECK_FAILS(co_token_parse(&back, longer), CO_EINPUT, "more than 28");
}

TEST(the_environment_forgets_a_token_that_was_taken)
{
    char text[CO_TOKEN_TEXT], got[CO_TOKEN_TEXT];
    co_token t;
    bool given;

    CHECK_OK(co_token_take(got, &given));
    CHECK(!given && !*got, "there was none");
    CHECK_OK(co_token_make(&t));
    co_token_text(text, &t);
    setenv("COHORT_TOKEN", text, 1);
    char *there = getenv("COHORT_TOKEN");
    CHECK_OK(co_token_take(got, &given));
    CHECK(given && strcmp(got, text) == 0, "took %s", got);
    CHECK(!getenv("COHORT_TOKEN"), "still in the environment");
    CHECK(strncmp(there, text, 4) != 0, "still in memory");
    setenv("COHORT_TOKEN", "nonsense", 1);
    CHECK_FAILS(co_token_take(got, &given), CO_EINPUT, "COHORT_TOKEN: ");
    CHECK(!getenv("COHORT_TOKEN"), "a wrong one too is gone");
}
