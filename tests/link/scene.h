/* scene.h -- several hosts in one process, joined by the link tcp over loopback and driven by turns. */
#ifndef TESTS_LINK_SCENE_H
#define TESTS_LINK_SCENE_H

#include "link/links.h"

enum { SCENE_HOSTS = 4, SCENE_DONE = 4096 };

struct done {
    bool sent;
    int peer;
    co_tag tag;
};

struct host {
    co_link *link;
    co_link_peer me;
    int listener;
    struct done done[SCENE_DONE]; /* what was reported, in order */
    int n_done;
    int n_lost;
    char why[SCENE_HOSTS][400]; /* the last loss of each peer; "": none */
};

struct scene {
    int hosts;
    co_tls *tls; /* NULL: plain */
    struct host host[SCENE_HOSTS];
};

/* Opens `hosts` links; all have met. */
void scene_open(struct scene *scene, int hosts, bool with_tls);
void scene_close(struct scene *scene);
co_err scene_host(struct scene *scene, int h, uint64_t birth,
                  co_tls *tls);                            /* (re)opens one link; it meets nobody */
void scene_meet(struct scene *scene, int h, unsigned who); /* bits: the hosts of the view */
void scene_turn(struct scene *scene);                      /* one turn of each */
bool scene_quiet(struct scene *scene, int turns);          /* true if nothing is reported in so many turns */
/* Turns until host h has n reports, or fails. */
void scene_until(struct scene *scene, int h, int n);
void scene_until_lost(struct scene *scene, int h, int peer, const char *words);
co_tag tag_of(uint32_t view, uint32_t chunk);
void post(struct scene *scene, int at, int from, co_tag tag, void *to, size_t len);
void put(struct scene *scene, int at, int to, co_tag tag, const void *bytes, size_t len);
void fill(uint8_t *bytes, size_t len, uint64_t seed);

#endif
