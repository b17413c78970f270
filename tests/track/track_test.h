/* track_test.h -- helpers of this room's tests. */
#ifndef TESTS_TRACK_TEST_H
#define TESTS_TRACK_TEST_H

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/str.h"
#include "base/json.h"
#include "harness.h"
#include "track/track.h"

__attribute__((unused)) static char *slurp(const char *path)
{
    char *text;
    CHECK_OK(co_fs_read(&text, NULL, path, 1 << 26));
    return text;
}

/* Leaves a lease in `dir` whose holder is dead. */
__attribute__((unused)) static void leave_dead_lease(const char *dir)
{
    int st;
    pid_t pid = fork();
    if (pid == 0) {
        co_folder *f;
        _exit(co_folder_open(&f, dir, "t") ? 1 : 0);
    }
    CHECK(waitpid(pid, &st, 0) == pid && st == 0, "child");
}

#endif
