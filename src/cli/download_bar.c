/* download_bar.c -- the progress of a download on standard error: one line on a terminal, else a line every
 * 10 s. */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

download_bar bar_begin(void)
{
    return (download_bar){.one_line = isatty(STDERR_FILENO), .last_ns = co_now_ns()};
}

bool bar_is_due(download_bar *bar)
{
    uint64_t now = co_now_ns();

    if (!bar->one_line && now - bar->last_ns < 10000000000u)
        return false;
    bar->last_ns = now;
    bar->shown = true;
    return true;
}

void bar_tell(void *ctx, const char *path, uint64_t done, uint64_t of)
{
    download_bar *bar = ctx;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (!bar_is_due(bar))
        return;
    fprintf(stderr, "%s%s: %.1f", bar->one_line ? "\r" : "", name, (double)done / 1e6);
    if (of)
        fprintf(stderr, " of %.1f MB, %d %%", (double)of / 1e6, (int)(100.0 * (double)done / (double)of));
    else
        fprintf(stderr, " MB");
    fprintf(stderr, bar->one_line ? "   " : "\n");
}

void bar_end(const download_bar *bar)
{
    if (bar->one_line && bar->shown)
        fprintf(stderr, "\r%78s\r", "");
}
