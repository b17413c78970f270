/* over_facts.c -- what must be the same on all hosts of a training: compared when they meet. */
#include <stdio.h>

#include "cli/over_int.h"
#include "link/links.h"

static void add_fact(void *facts, const char *key, const char *value)
{
    char name[200];

    snprintf(name, sizeof name, "config.%s", key);
    json_object_set_new(facts, name, co_json_string(value));
}

struct probing {
    json_t *facts;
    const char *pretends; /* what stands for this host's hashes, for tests; "": nothing does */
};

static void add_hash(void *ctx, const char *what, const char *hash)
{
    const struct probing *probing = ctx;

    json_object_set_new(probing->facts, what, json_string(*probing->pretends ? probing->pretends : hash));
}

char *facts_of(const training *s)
{
    const co_plan_facts *plan = co_plan_facts_of(s->plan);
    json_t *facts = json_object();
    struct probing probing = {facts, s->app.hosts->pixels};
    const uint32_t *count = plan->data->count;
    char number[32], data[160];

    json_object_set_new(facts, "model", json_string(s->app.spec.model->name));
    json_object_set_new(facts, "data set", json_string(s->app.spec.data->name));
    json_object_set_new(facts, "optimiser", json_string(s->app.spec.optim->name));
    json_object_set_new(facts, "kernels", json_string(plan->kernels));
    json_object_set_new(facts, "link", json_string(s->over->given.link == CO_LINK_MPI ? "mpi" : "tcp"));
    co_err err = co_conf_facts(s->app.conf, add_fact, facts);
    snprintf(data, sizeof data, "%u train, %u val, %u test, sha256 %s", count[CO_SPLIT_TRAIN],
             count[CO_SPLIT_VAL], count[CO_SPLIT_TEST], plan->data->fingerprint); /* the counts are for people */
    json_object_set_new(facts, "data", json_string(data));
    snprintf(number, sizeof number, "%lld", (long long)plan->batch);
    json_object_set_new(facts, "batch", json_string(number));
    snprintf(number, sizeof number, "%d", plan->slices);
    json_object_set_new(facts, "slices", json_string(number));
    if (!err)
        err = co_dataset_probe(plan->data, add_hash, &probing); /* depends on all of the above */
    char *text = err ? NULL : co_json_text(facts);
    json_decref(facts);
    return text;
}
