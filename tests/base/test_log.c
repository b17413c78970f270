#include "harness.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

struct heard {
    int n;
    co_log_level level;
    char text[4096];
};

static void listen(void *ctx, co_log_level level, const char *text)
{
    struct heard *h = ctx;
    h->n++;
    h->level = level;
    snprintf(h->text, sizeof h->text, "%s", text);
    errno = 5;
}

TEST(the_log_is_silent_until_somebody_listens)
{
    struct heard h = {0};
    co_log_say(CO_LOG_ERROR, "nobody hears");
    co_log_to(listen, &h, CO_LOG_WARN);
    co_log_say(CO_LOG_INFO, "too quiet");
    CHECK(h.n == 0, "heard \"%s\"", h.text);
    co_log_say(CO_LOG_WARN, "rank %d", 3);
    CHECK(h.n == 1 && h.level == CO_LOG_WARN && strcmp(h.text, "rank 3") == 0, "heard \"%s\"", h.text);
    co_log_to(NULL, NULL, CO_LOG_DEBUG);
    co_log_say(CO_LOG_ERROR, "silent again");
    CHECK(h.n == 1, "heard \"%s\"", h.text);
}

TEST(a_log_line_keeps_errno_and_its_length)
{
    struct heard h = {0};
    char line[3001];
    memset(line, 'y', 3000);
    line[3000] = '\0';
    co_log_to(listen, &h, CO_LOG_DEBUG);
    errno = ENOENT;
    co_log_say(CO_LOG_INFO, "%s: %m", line);
    CHECK(errno == ENOENT, "errno is %d", errno);
    CHECK(strncmp(h.text, line, 3000) == 0 && strcmp(h.text + 3000, ": No such file or directory") == 0, "%s",
          h.text + 2990);
    co_alloc_fail_at(1);
    co_log_say(CO_LOG_INFO, "%s", line);
    co_alloc_fail_at(0);
    CHECK(strlen(h.text) == 1023, "without memory a line is cut, not lost: %zu", strlen(h.text));
}
