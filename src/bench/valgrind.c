/* valgrind.c -- counts the instructions of a program. Counts hardly move with what else the machine does, so that they
 * show what times on a busy machine cannot. */
#include "bench/bench_int.h"

#include <string.h>
#include <unistd.h>

double valgrind_count(const char *tool, const char *command)
{
    char line[6000];
    double refs = 0;

    if ((size_t)snprintf(line, sizeof line, "valgrind %s %s 2>&1 | sed -n 's/.*I *refs: *//p' | tr -d ,",
                         tool, command) >= sizeof line)
        return 0;
    FILE *p = popen(line, "r");
    if (!p || fscanf(p, "%lf", &refs) != 1)
        refs = 0;
    if (p)
        pclose(p);
    return refs;
}

bool own_folder(char *out, size_t size)
{
    ssize_t n = readlink(self(), out, size - 1);
    char *slash = n > 0 ? memrchr(out, '/', (size_t)n) : NULL;

    if (!slash || memchr(out, '\'', (size_t)n))
        return false;
    *slash = 0;
    return true;
}
