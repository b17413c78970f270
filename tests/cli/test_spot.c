/* trainer.spot_url: a stand-in on loopback answers 404, and then announces the end of the machine. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"
#include "net/net.h"

/* Answers in turn; the last one again and again. */
static const char *const answers[] = {
    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nFALSE",
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nTRUE"};

static void stand_in(int listener)
{
    for (size_t i = 0;; i += i + 1 < CO_COUNT(answers)) {
        char request[4096];
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || read(fd, request, sizeof request) <= 0 || write(fd, answers[i], strlen(answers[i])) < 0)
            _exit(1);
        close(fd);
    }
}

TEST(a_clouds_notice_ends_the_run_saved_and_it_can_be_continued)
{
    int listener;

    CHECK_OK(co_net_listen(&listener, "127.0.0.1", 0));
    co_addr at = co_net_local(listener);
    CHECK(fcntl(listener, F_SETFL, 0) == 0, "fcntl");
    pid_t pid = fork();
    if (pid == 0)
        stand_in(listener);
    close(listener);
    test_run r = test_sh("$COHORT train model=cnn trainer.max_epochs=100000 run.dir=r"
                         " trainer.spot_url=http://127.0.0.1:%d/latest/spot 2>&1",
                         co_addr_port(&at));
    kill(pid, SIGKILL);
    test_wait(pid, 5);
    CHECK(r.status == 75 && test_contains(r.out, "about to be taken away") &&
              test_contains(r.out, "continue with:"),
          "status %d: %s", r.status, r.out);
    CHECK(r.secs > 5, "the first two answers were taken for a notice");
    test_note("ended %.1f s after its start, at the third answer", r.secs);
    free(r.out);
}
