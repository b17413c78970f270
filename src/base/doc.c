#include "base/doc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the pages may be, relative to the running program or absolute. First those of `make install`,
 * build/cohort and build/asan/cohort; then the system's folders, for a program that links the library. */
static const char *const folders[] = {"../share/doc/cohort", "../docs", "../../docs",
                                      "/usr/local/share/doc/cohort", "/usr/share/doc/cohort"};

const char *co_doc(char out[PATH_MAX], const char *page)
{
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        bool rooted = folders[i][0] == '/';
        snprintf(path, sizeof path, "%s%s%s/%s", rooted ? "" : self, rooted ? "" : "/", folders[i], page);
        if (access(path, R_OK) == 0 && realpath(path, out))
            return out;
    }
    snprintf(out, PATH_MAX, "docs/%s of cohort's source", page);
    return out;
}
