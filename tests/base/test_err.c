#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/err.h"

TEST(an_error_carries_its_text_and_errno)
{
    CHECK(strcmp(co_errmsg(), "") == 0, "\"%s\"", co_errmsg());
    errno = ENOENT;
    CHECK(co_fail(CO_EIO, "open %s: %m", "shard") == CO_EIO, "code");
    CHECK(strcmp(co_errmsg(), "open shard: No such file or directory") == 0, "%s", co_errmsg());
    CHECK(co_fail_in(CO_EIO, "checkpoint %d", 7) == CO_EIO, "code");
    CHECK(strcmp(co_errmsg(), "checkpoint 7: open shard: No such file or directory") == 0, "%s", co_errmsg());
    /* the old message is an argument of the new one */
    CHECK(co_fail(CO_EFAIL, "again: %s", co_errmsg()) == CO_EFAIL, "code");
    CHECK(test_contains(co_errmsg(), "again: checkpoint 7: open"), "%s", co_errmsg());
    co_errclear();
    CHECK(strcmp(co_errmsg(), "") == 0, "%s", co_errmsg());
}

TEST(a_long_error_is_cut_not_lost)
{
    char word[6000];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    co_fail(CO_EIO, "%s", word);
    CHECK(strlen(co_errmsg()) == 4095, "%zu", strlen(co_errmsg()));
    co_fail_in(CO_EIO, "while reading");
    CHECK(strlen(co_errmsg()) == 4095 && strncmp(co_errmsg(), "while reading: www", 18) == 0, "%.40s",
          co_errmsg());
    co_fail_in(CO_EIO, "%s", word); /* there is no room for both: the cause is kept */
    CHECK(strncmp(co_errmsg(), "while reading: www", 18) == 0, "%.40s", co_errmsg());
}

static void *fail_there(void *ctx)
{
    co_fail(CO_EIO, "there");
    return NULL;
}

TEST(a_threads_error_is_its_own_tsan)
{
    pthread_t t;
    co_fail(CO_EIO, "here");
    CHECK(pthread_create(&t, NULL, fail_there, NULL) == 0, "thread");
    pthread_join(t, NULL);
    CHECK(strcmp(co_errmsg(), "here") == 0, "%s", co_errmsg());
}
