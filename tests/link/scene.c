/* scene.c -- see scene.h. */
#include "link/scene.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

static void done(void *ctx, bool sent, int peer, const co_tag *tag)
{
    struct host *host = ctx;

    CHECK(host->n_done < SCENE_DONE, "too many reports");
    host->done[host->n_done++] = (struct done){sent, peer, *tag};
}

co_err scene_host(struct scene *scene, int h, uint64_t birth, co_tls *tls)
{
    struct host *host = &scene->host[h];
    co_link_spec spec = {.me = h, .birth = birth, .run = 77, .listener = host->listener, .tls = tls};

    co_link_close(host->link);
    host->link = NULL;
    host->me.birth = birth;
    CO_TRY(co_link_tcp(&host->link, &spec));
    host->link->done = done;
    host->link->ctx = host;
    return CO_OK;
}

void scene_meet(struct scene *scene, int h, unsigned who)
{
    co_link_peer peers[SCENE_HOSTS];
    int n = 0;

    for (int i = 0; i < scene->hosts; i++)
        if (who >> i & 1)
            peers[n++] = scene->host[i].me;
    CHECK_OK(co_link_meet(scene->host[h].link, peers, n));
}

void scene_open(struct scene *scene, int hosts, bool with_tls)
{
    co_token token = {{3, 1, 4}};

    memset(scene, 0, sizeof *scene);
    scene->hosts = hosts;
    if (with_tls)
        CHECK_OK(co_tls_new(&scene->tls, &token, "run"));
    for (int h = 0; h < hosts; h++) {
        struct host *host = &scene->host[h];
        CHECK_OK(co_net_listen(&host->listener, "127.0.0.1", 0));
        co_addr at = co_net_local(host->listener);
        host->me = (co_link_peer){.id = h, .host = "127.0.0.1", .port = co_addr_port(&at)};
        CHECK_OK(scene_host(scene, h, 100 + (uint64_t)h, scene->tls));
    }
    for (int h = 0; h < hosts; h++)
        scene_meet(scene, h, (1u << hosts) - 1);
}

void scene_close(struct scene *scene)
{
    for (int h = 0; h < scene->hosts; h++) {
        co_link_close(scene->host[h].link);
        close(scene->host[h].listener);
    }
    co_tls_free(scene->tls);
}

void scene_turn(struct scene *scene)
{
    char why[400];
    int peer;

    for (int h = 0; h < scene->hosts; h++) {
        struct host *host = &scene->host[h];
        if (!host->link)
            continue;
        CHECK_OK(co_link_turn(host->link, 0));
        while (co_link_lost(host->link, &peer, why, sizeof why)) {
            host->n_lost++;
            snprintf(host->why[peer], sizeof host->why[peer], "%s", why);
        }
    }
}

bool scene_quiet(struct scene *scene, int turns)
{
    int before = 0, after = 0;

    for (int h = 0; h < scene->hosts; h++)
        before += scene->host[h].n_done + scene->host[h].n_lost;
    for (int i = 0; i < turns; i++)
        scene_turn(scene);
    for (int h = 0; h < scene->hosts; h++)
        after += scene->host[h].n_done + scene->host[h].n_lost;
    return before == after;
}

void scene_until(struct scene *scene, int h, int n)
{
    double until = co_now_s() + 30;

    while (scene->host[h].n_done < n) {
        CHECK(co_now_s() < until, "host %d has %d of %d reports; lost: %s%s%s%s", h, scene->host[h].n_done, n,
              scene->host[h].why[0], scene->host[h].why[1], scene->host[h].why[2], scene->host[h].why[3]);
        scene_turn(scene);
    }
}

void scene_until_lost(struct scene *scene, int h, int peer, const char *words)
{
    double until = co_now_s() + 30;

    while (!scene->host[h].why[peer][0]) {
        CHECK(co_now_s() < until, "host %d has not lost host %d", h, peer);
        scene_turn(scene);
    }
    CHECK(test_contains(scene->host[h].why[peer], words), "host %d says \"%s\", wanted \"%s\"", h,
          scene->host[h].why[peer], words);
}

co_tag tag_of(uint32_t view, uint32_t chunk)
{
    return (co_tag){.view = view, .unit = 5, .kind = CO_MSG_PIECE, .node = 1, .chunk = chunk};
}

void post(struct scene *scene, int at, int from, co_tag tag, void *to, size_t len)
{
    CHECK_OK(co_link_post(scene->host[at].link, from, &tag, to, len));
}

void put(struct scene *scene, int at, int to, co_tag tag, const void *bytes, size_t len)
{
    CHECK_OK(co_link_send(scene->host[at].link, to, &tag, bytes, len));
}

void fill(uint8_t *bytes, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0)
            seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 8 * (i % 8));
    }
}
