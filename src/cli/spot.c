/* spot.c -- trainer.spot_url: a cloud says at an address of its own when it is about to take this machine
 * away.
 *
 * A thread asks there every 5 s. An answer with status 200 counts as a SIGUSR1: the run finishes its step,
 * saves, and exits with 75 on all hosts. Any other status, no answer, and the text FALSE (Google's, until
 * then) mean that nothing is planned.
 */
#include "cli/train_int.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "net/http.h"

enum { SPOT_ASK_MS = 5000, SPOT_ANSWER_S = 2, SPOT_NAP_MS = 50, SPOT_MOST = 65536 };

struct spot {
    pthread_t thread;
    atomic_bool closing;
    const char *url;
    co_http *http;
};

static bool is_announced(struct spot *spot)
{
    static const char *const headers[] = {"Metadata-Flavor: Google", NULL};
    co_http_request ask = {.url = spot->url, .headers = headers, .most = SPOT_MOST, .direct = true};
    co_patience patience = co_patience_s(SPOT_ANSWER_S);
    co_http_answer answer = {0};

    patience.give_up = &spot->closing;
    bool is = co_http_do(spot->http, &answer, &ask, &patience) == CO_OK && answer.status == 200 &&
              strncmp(answer.body, "FALSE", 5) != 0;
    if (answer.body)
        co_free(answer.body);
    return is;
}

static void *ask_again(void *ctx)
{
    struct spot *spot = ctx;

    while (!atomic_load(&spot->closing)) {
        if (is_announced(spot)) {
            co_notice("trainer.spot_url: this machine is about to be taken away");
            kill(getpid(), SIGUSR1);
            break;
        }
        for (int ms = 0; ms < SPOT_ASK_MS && !atomic_load(&spot->closing); ms += SPOT_NAP_MS)
            poll(NULL, 0, SPOT_NAP_MS);
    }
    return NULL;
}

co_err spot_open(training *s)
{
    if (!s->app.cfg->spot_url)
        return CO_OK;
    if (strncmp(s->app.cfg->spot_url, "http://", 7) != 0 && strncmp(s->app.cfg->spot_url, "https://", 8) != 0)
        return co_fail(CO_EINPUT,
                       "trainer.spot_url=%s: an address that begins with http:// or https:// is needed",
                       s->app.cfg->spot_url);
    struct spot *spot = co_zalloc(sizeof *spot);
    if (!spot)
        return CO_ENOMEM;
    spot->url = s->app.cfg->spot_url;
    co_err err = co_http_open(&spot->http);
    if (!err && co_thread_start(&spot->thread, ask_again, spot) != 0)
        err = co_fail(CO_ENOMEM, "trainer.spot_url: no thread");
    if (err) {
        co_http_close(spot->http);
        co_free(spot);
        return err;
    }
    s->spot = spot;
    return CO_OK;
}

void spot_close(training *s)
{
    struct spot *spot = s->spot;

    if (!spot)
        return;
    atomic_store(&spot->closing, true);
    pthread_join(spot->thread, NULL);
    co_http_close(spot->http);
    co_free(spot);
    s->spot = NULL;
}
