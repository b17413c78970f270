/* real.h -- tests of real sets keep what they unpacked beside the tests, for the next time. */
#ifndef TESTS_DATA_REAL_H
#define TESTS_DATA_REAL_H

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

static inline void keep_cache(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 16);

    CHECK(n > 0, "%m");
    self[n] = 0;
    strcpy(strrchr(self, '/'), "/test-cache");
    setenv("COHORT_CACHE", self, 1);
}

#endif
