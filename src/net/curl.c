/* curl.c -- libcurl, loaded on first use, and the two handles of a transfer.
 *
 * curl resolves names in a thread, and ending a transfer waits for that thread: as long as this host's name
 * servers do not answer. (CURLOPT_QUICK_EXIT avoids the wait, but needs curl 7.87.) When we give up a
 * transfer during its name lookup, we therefore leave its handles to a thread of ours, which ends when the
 * lookup ends.
 */
#include "net/curl_int.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/library.h"

struct curl_calls curl;
static char why_not[256]; /* "" if curl is loaded */

static void load(void)
{
    static const co_symbol table[] = {{"curl_global_init", &curl.global_init},
                                      {"curl_easy_init", &curl.easy_init},
                                      {"curl_easy_setopt", &curl.easy_setopt},
                                      {"curl_easy_getinfo", &curl.easy_getinfo},
                                      {"curl_easy_strerror", &curl.easy_strerror},
                                      {"curl_easy_reset", &curl.easy_reset},
                                      {"curl_easy_cleanup", &curl.easy_cleanup},
                                      {"curl_slist_append", &curl.slist_append},
                                      {"curl_slist_free_all", &curl.slist_free_all},
                                      {"curl_multi_init", &curl.multi_init},
                                      {"curl_multi_add_handle", &curl.multi_add_handle},
                                      {"curl_multi_remove_handle", &curl.multi_remove_handle},
                                      {"curl_multi_perform", &curl.multi_perform},
                                      {"curl_multi_poll", &curl.multi_poll},
                                      {"curl_multi_info_read", &curl.multi_info_read},
                                      {"curl_multi_cleanup", &curl.multi_cleanup}};
    const char *missing;
    void *library = co_library_load("libcurl.so.4", CO_LIBRARY_LOCAL, table, CO_COUNT(table), &missing);

    if (missing)
        snprintf(why_not, sizeof why_not,
                 "libcurl.so.4 has no %s: 7.66 or later is needed (package libcurl4)", missing);
    else if (!library)
        snprintf(why_not, sizeof why_not, "libcurl.so.4 is not here (package libcurl4): %.150s", dlerror());
    else if (curl.global_init(3) != 0)
        snprintf(why_not, sizeof why_not, "libcurl.so.4 does not start (curl_global_init)");
}

co_err curl_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return *why_not ? co_fail(CO_EINPUT, "%s", why_not) : CO_OK;
}

/* ---- the handles ---- */
co_err curl_pair_open(curl_pair *out)
{
    curl_pair new = {.easy = curl.easy_init(), .multi = curl.multi_init()};

    if (!new.easy || !new.multi) {
        curl_pair_close(&new);
        return co_fail(CO_ENOMEM, "out of memory for an HTTP client");
    }
    *out = new;
    return CO_OK;
}

void curl_pair_close(curl_pair *pair)
{
    if (pair->easy)
        curl.easy_cleanup(pair->easy);
    if (pair->multi)
        curl.multi_cleanup(pair->multi);
    *pair = (curl_pair){0};
}

struct abandoned {
    curl_pair pair;
    void *headers;
};

static void *wait_for_the_name(void *arg)
{
    struct abandoned *a = arg;

    curl.multi_remove_handle(a->pair.multi, a->pair.easy);
    curl_pair_close(&a->pair);
    curl.slist_free_all(a->headers);
    co_free(a);
    return NULL;
}

void curl_pair_abandon(curl_pair *pair, void *headers)
{
    struct abandoned *left = co_zalloc(sizeof *left);
    curl_pair new;
    pthread_t thread;

    if (left && curl_pair_open(&new) == CO_OK) {
        *left = (struct abandoned){.pair = *pair, .headers = headers};
        if (co_thread_start(&thread, wait_for_the_name, left) == 0) {
            pthread_detach(thread);
            *pair = new;
            return;
        }
        curl_pair_close(&new);
    }
    co_free(left);
    curl.multi_remove_handle(pair->multi, pair->easy); /* no thread or memory: wait for the lookup here */
    curl.slist_free_all(headers);
}
