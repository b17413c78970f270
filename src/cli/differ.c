/* differ.c -- how a line's configuration differs from that of the run it continues. */
#include "cli/cli_int.h"

#include "base/alloc.h"

enum { MOST_SHOWN = 8 };

struct differences {
    co_str text;
    int n;
};

static void add_difference(void *ctx, const char *key, const char *here, const char *there)
{
    struct differences *d = ctx;

    if (d->n++ < MOST_SHOWN)
        co_str_addf(&d->text, "%s%s=%s (the run has %s)", d->n > 1 ? ", " : "", key, here, there);
}

/* The run's own configuration. Its notes about keys of other programs were printed when it began. */
static co_err compose_run(co_conf **out, co_conf_spec *quiet, const char *config)
{
    char *word = co_conf_word("experiment", config);

    quiet->note = NULL;
    co_err err = word ? co_conf_compose(out, quiet, (const char *const[]){word}, 1) : CO_ENOMEM;
    co_free(word);
    return err;
}

char *app_differences(const app *a, const line *l)
{
    char *config = a->resume ? run_config_of(a->resume) : NULL;
    co_conf_spec quiet = *app_conf_spec(l->config_dir);
    struct differences d = {0};
    co_conf *run;

    if (config && compose_run(&run, &quiet, config) == CO_OK) {
        if (co_conf_differences(a->conf, run, add_difference, &d) == CO_OK && d.n > MOST_SHOWN)
            co_str_addf(&d.text, " and %d more", d.n - MOST_SHOWN);
        co_conf_free(run);
    }
    co_free(config);
    co_errclear();
    return d.n ? co_str_take(&d.text) : NULL;
}
