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

char *facts_of(const training *s)
{
    const co_plan_facts *plan = co_plan_facts_of(s->plan);
    json_t *facts = json_object();
    char number[32];

    json_object_set_new(facts, "model", json_string(s->app.spec.model->name));
    json_object_set_new(facts, "data set", json_string(s->app.spec.data->name));
    json_object_set_new(facts, "optimiser", json_string(s->app.spec.optim->name));
    json_object_set_new(facts, "kernels", json_string(plan->kernels));
    json_object_set_new(facts, "link", json_string(s->over->given.link == CO_LINK_MPI ? "mpi" : "tcp"));
    if (co_conf_facts(s->app.conf, add_fact, facts) != CO_OK) {
        json_decref(facts);
        return NULL;
    }
    json_object_set_new(facts, "data", co_json_string(plan->data->fingerprint));
    snprintf(number, sizeof number, "%lld", (long long)plan->batch);
    json_object_set_new(facts, "batch", json_string(number));
    snprintf(number, sizeof number, "%d", plan->slices);
    json_object_set_new(facts, "slices", json_string(number));
    char *text = co_json_text(facts);
    json_decref(facts);
    return text;
}
