/* book_test.h -- helpers of this room's tests: run folders made by hand, and what a book says. */
#ifndef TESTS_BOOK_TEST_H
#define TESTS_BOOK_TEST_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "book/book.h"
#include "book/book_int.h"
#include "harness.h"

__attribute__((unused)) static void put(const char *path, const char *text)
{
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

__attribute__((unused)) static char *slurp(const char *path)
{
    char *text;

    CHECK_OK(co_fs_read(&text, NULL, path, 1 << 26));
    return text;
}

/* The file has all these texts, each on a line of its own in `wanted`. */
__attribute__((unused)) static void has_all(const char *path, const char *const *wanted, size_t n)
{
    char *text = slurp(path);

    for (size_t i = 0; i < n; i++)
        CHECK(strstr(text, wanted[i]), "%s does not have \"%s\":\n%s", path, wanted[i], text);
    co_free(text);
}

/* One file that needs nothing else: no script, no outside address. Well formed as far as tags go. */
__attribute__((unused)) static void stands_alone(const char *path)
{
    static const char *const no[] = {"<script", "http:", "https:", "src=", "@import", "url(http", "<link"};
    char *text = slurp(path);

    for (size_t i = 0; i < CO_COUNT(no); i++)
        CHECK(!strstr(text, no[i]), "%s has %s", path, no[i]);
    CHECK(strstr(text, "prefers-color-scheme: dark"), "%s has no dark colours", path);
    CHECK(co_utf8_valid(text), "%s is not UTF-8", path);
    co_free(text);
}

#endif
