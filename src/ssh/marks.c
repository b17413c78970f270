/* marks.c -- messages from a host to the conductor, mixed into the host's standard output.
 *
 * A mark may come anywhere, even after an unfinished line: it begins with a byte that does not occur in text.
 * The host's stage decides which marks count. Until our program starts there, the text between marks comes
 * from the login.
 */
#include "ssh/ssh_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"

enum { MARK_MOST = 700 };

static co_err say(int fd, const char *words)
{
    char text[MARK_MOST];
    int n = snprintf(text, sizeof text, CO_SSH_MARK "%s\n", words);

    return co_fs_write_all(fd, text, (size_t)n, "standard output");
}

co_err co_ssh_say_start(int fd)
{
    return say(fd, "start");
}

co_err co_ssh_say_where(int fd, int port, const char *addresses)
{
    char words[600];

    snprintf(words, sizeof words, "where %d %s", port, *addresses ? addresses : "-");
    return say(fd, words);
}

co_err co_ssh_say_end(int fd, int status)
{
    char words[32];

    snprintf(words, sizeof words, "end %d", status);
    return say(fd, words);
}

bool mark_find(const char *text, size_t len, size_t *at, size_t *end, char *words, size_t size)
{
    const size_t head = sizeof CO_SSH_MARK - 1;
    const char *from = len ? memmem(text, len, CO_SSH_MARK, head) : NULL;
    const char *nl = from ? memchr(from, '\n', (size_t)(text + len - from)) : NULL;

    if (!nl)
        return false;
    *at = (size_t)(from - text);
    *end = (size_t)(nl - text) + 1;
    snprintf(words, size, "%.*s", (int)(nl - from - (ptrdiff_t)head), from + head);
    return true;
}

size_t mark_begun(const char *text, size_t len)
{
    const size_t head = sizeof CO_SSH_MARK - 1;
    const char *from = len ? memrchr(text, CO_SSH_MARK[0], len) : NULL;
    size_t n = from ? (size_t)(text + len - from) : 0;

    return n < MARK_MOST && n && memcmp(from, CO_SSH_MARK, n < head ? n : head) == 0 ? n : 0;
}
