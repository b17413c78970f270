/* Mistakes are collected, told together, each once, and never more than a message can hold. */
#include "base/mistakes.h"

#include <string.h>

#include "harness.h"

TEST(mistakes_are_told_together_and_each_once)
{
    co_mistakes m = {0};

    CHECK_OK(co_mistakes_tell(&m));
    CHECK_OK(co_mistake(&m, CO_OK));
    CHECK_OK(co_mistake(&m, co_fail(CO_EINPUT, "one")));
    CHECK_OK(co_mistake(&m, co_fail(CO_EINPUT, "two\none\non")));
    CHECK(co_mistake(&m, co_fail(CO_EIO, "the disk")) == CO_EIO, "an error of another kind is kept back");
    CHECK(m.n == 3, "%d", m.n);
    CHECK(co_mistakes_tell(&m) == CO_EINPUT && strcmp(co_errmsg(), "one\ntwo\non") == 0, "%s", co_errmsg());
    co_mistakes_fini(&m);
    CHECK_OK(co_mistakes_tell(&m));
}

TEST(more_mistakes_than_a_message_holds_are_counted)
{
    co_mistakes m = {0};

    for (int i = 0; i < 200; i++)
        CHECK_OK(co_mistake(&m, co_fail(CO_EINPUT, "mistake %03d of a line that has very many of them", i)));
    CHECK(co_mistakes_tell(&m) == CO_EINPUT && strstr(co_errmsg(), "mistake 000"), "%s", co_errmsg());
    const char *more = strstr(co_errmsg(), "\nand ");
    CHECK(more && strstr(more, " more") && m.untold > 0 && m.untold < 200, "%s", co_errmsg());
    co_mistakes_fini(&m);
}
