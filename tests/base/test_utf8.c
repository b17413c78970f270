#include "base/str.h"

#include <string.h>

#include "harness.h"

TEST(every_code_point_comes_back_from_utf8)
{
    for (uint32_t c = 0; c < CO_CODE_POINTS; c++) {
        char bytes[5] = "";
        uint32_t back = ~c;
        int n = co_utf8_put(bytes, c), got = co_utf8_get(&back, bytes, (size_t)n);
        bool surrogate = c >= 0xD800 && c < 0xE000;
        CHECK(surrogate ? got == 0 : got == n && back == c, "U+%04X: %d bytes, %d read, U+%04X", c, n, got,
              back);
        if (n > 1)
            CHECK(co_utf8_get(&back, bytes, (size_t)n - 1) == 0, "U+%04X cut short is taken", c);
    }
}

TEST(utf8_that_is_not_well_formed_is_refused)
{
    static const char *const bad[] = {"\x80",         "\xC0\xAF",     "\xC1\xBF",         "\xE0\x80\xAF",
                                      "\xED\xA0\x80", "\xF0\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
                                      "\xFF",         "\xC3",         "\xE2\x82",         "a\xC3("};
    uint32_t code;

    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK(!co_utf8_valid(bad[i]), "no %zu is taken", i);
    CHECK(co_utf8_valid("") && co_utf8_valid("na\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80"),
          "good text is refused");
    CHECK(co_utf8_get(&code, "", 0) == 0, "something in nothing");
}
