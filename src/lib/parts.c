/* parts.c -- turns a program's models and data sets into rows of the registries.
 *
 * Public structs are copied field by field into the internal structs, so that these can change without a
 * change of cohort.h. Enums have the same values on both sides, which is asserted here. The copies take a few
 * hundred bytes per call of the library.
 */
#include "lib/lib_int.h"

#include <string.h>

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is " #b)
SAME(COHORT_EINPUT, CO_EINPUT);
SAME(COHORT_EIO, CO_EIO);
SAME(COHORT_EFORMAT, CO_EFORMAT);
SAME(COHORT_ENOMEM, CO_ENOMEM);
SAME(COHORT_EPEER, CO_EPEER);
SAME(COHORT_ETIMEOUT, CO_ETIMEOUT);
SAME(COHORT_ESTOP, CO_ESTOP);
SAME(COHORT_EFAIL, CO_EFAIL);
SAME(COHORT_INT, CO_OPT_INT);
SAME(COHORT_FLOAT, CO_OPT_FLOAT);
SAME(COHORT_BOOL, CO_OPT_BOOL);
SAME(COHORT_STR, CO_OPT_STR);
SAME(COHORT_ENUM, CO_OPT_ENUM);
SAME(COHORT_CLASSIFY, CO_TASK_CLASSIFY);
SAME(COHORT_REGRESS, CO_TASK_REGRESS);
SAME(COHORT_TOKENS, CO_TASK_LM);
SAME(COHORT_PAIRS, CO_TASK_PAIRS);
SAME(COHORT_IGNORE, CO_IGNORE);
SAME(COHORT_TRAIN, CO_SPLIT_TRAIN);
SAME(COHORT_VAL, CO_SPLIT_VAL);
SAME(COHORT_TEST, CO_SPLIT_TEST);
SAME(COHORT_SPLITS, CO_SPLIT_COUNT);
SAME(COHORT_INIT_ZERO, CO_INIT_ZERO);
SAME(COHORT_INIT_ONE, CO_INIT_ONE);
SAME(COHORT_INIT_UNIFORM, CO_INIT_UNIFORM);
SAME(COHORT_INIT_NORMAL, CO_INIT_NORMAL);
SAME(COHORT_INIT_VALUE, CO_INIT_VALUE);
SAME(COHORT_INIT_DIRAC, CO_INIT_DIRAC);
SAME(COHORT_INIT_WHITEN, CO_INIT_WHITEN);
SAME(COHORT_DONE, CO_STATUS_DONE);
SAME(COHORT_STOPPED, CO_STATUS_STOPPED);
SAME(COHORT_FAILED, CO_STATUS_FAILED);
SAME(COHORT_MAX_DIMS, CO_MAX_DIMS);

static size_t field_size(cohort_type type)
{
    return type == COHORT_INT || type == COHORT_FLOAT ? 8
           : type == COHORT_BOOL                      ? sizeof(bool)
           : type == COHORT_STR                       ? sizeof(char *)
                                                      : sizeof(int);
}

/* `what` is the part, for messages: "model mine". */
static co_err check_option(const char *what, const cohort_option *o, size_t cfg_size)
{
    if (o->type < COHORT_INT || o->type > COHORT_ENUM)
        return co_fail(CO_EINPUT, "%s: option %s has a type that cohort.h does not define", what, o->key);
    if (!o->fallback)
        return co_fail(CO_EINPUT, "%s: option %s has no default (.fallback)", what, o->key);
    if (o->type == COHORT_ENUM && !o->choices)
        return co_fail(CO_EINPUT, "%s: option %s is an enum without choices", what, o->key);
    if (o->offset > cfg_size || cfg_size - o->offset < field_size(o->type))
        return co_fail(CO_EINPUT, "%s: option %s lies outside its struct of %zu bytes: is .cfg_size set?",
                       what, o->key, cfg_size);
    return CO_OK;
}

static co_err copy_options(const co_option **out, co_pool *pool, const char *what,
                           const cohort_option *theirs, size_t cfg_size)
{
    size_t n = 0;

    while (theirs && theirs[n].key)
        n++;
    co_option *to = co_pool_alloc(pool, (n + 1) * sizeof *to);
    if (!to)
        return CO_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const cohort_option *o = &theirs[i];
        CO_TRY(check_option(what, o, cfg_size));
        to[i] = (co_option){.key = o->key,
                            .type = (co_opt_type)o->type,
                            .offset = o->offset,
                            .fallback = o->fallback,
                            .help = o->help ? o->help : "",
                            .min = o->min,
                            .max = o->max,
                            .choices = o->choices};
    }
    *out = to;
    return CO_OK;
}

/* Accepts any data: build() itself refuses data that does not fit, with cohort_graph_fail. */
static co_err accept(const void *cfg, const co_io *io)
{
    return CO_OK;
}

static co_err add_model(lib_model *to, co_pool *pool, const cohort_model *m)
{
    if (!m->name || !m->name[0] || !m->build)
        return co_fail(CO_EINPUT, "model \"%s\" needs a name and a build function", m->name ? m->name : "");
    char *what = co_pool_printf(pool, "model %s", m->name);
    if (!what)
        return CO_ENOMEM;
    to->theirs = m;
    to->def = (co_model_def){.name = m->name,
                             .help = m->help ? m->help : "",
                             .cfg_size = m->cfg_size,
                             .batch_stats = m->batch_stats,
                             .check = accept,
                             .build = model_build};
    return copy_options(&to->def.options, pool, what, m->options, m->cfg_size);
}

static co_err add_dataset(lib_dataset *to, co_pool *pool, const cohort_dataset *d)
{
    if (!d->name || !d->name[0] || !d->open || !d->fill)
        return co_fail(CO_EINPUT, "data set \"%s\" needs a name, an open and a fill function",
                       d->name ? d->name : "");
    char *what = co_pool_printf(pool, "data set %s", d->name);
    if (!what)
        return CO_ENOMEM;
    to->theirs = d;
    to->def = (co_dataset_def){
        .name = d->name, .help = d->help ? d->help : "", .cfg_size = d->cfg_size, .open_row = dataset_open};
    return copy_options(&to->def.options, pool, what, d->options, d->cfg_size);
}

static co_err add_all(lib_parts *p, const cohort_parts *parts)
{
    size_t models = 0, datasets = 0;

    while (parts->models && parts->models[models])
        models++;
    while (parts->datasets && parts->datasets[datasets])
        datasets++;
    lib_model *m = co_pool_alloc(&p->pool, (models + 1) * sizeof *m);
    lib_dataset *d = co_pool_alloc(&p->pool, (datasets + 1) * sizeof *d);
    const co_model_def **model_rows = co_pool_alloc(&p->pool, (models + 1) * sizeof *model_rows);
    const co_dataset_def **data_rows = co_pool_alloc(&p->pool, (datasets + 1) * sizeof *data_rows);
    if (!m || !d || !model_rows || !data_rows)
        return CO_ENOMEM;
    for (size_t i = 0; i < models; i++) {
        CO_TRY(add_model(&m[i], &p->pool, parts->models[i]));
        model_rows[i] = &m[i].def;
    }
    for (size_t i = 0; i < datasets; i++) {
        CO_TRY(add_dataset(&d[i], &p->pool, parts->datasets[i]));
        data_rows[i] = &d[i].def;
    }
    p->cli = (co_cli_parts){.models = model_rows, .datasets = data_rows, .program = parts->program};
    return CO_OK;
}

co_err parts_init(lib_parts *p, const cohort_parts *parts)
{
    static const cohort_parts none;

    memset(p, 0, sizeof *p);
    co_err err = add_all(p, parts ? parts : &none);
    if (!err)
        err = co_cli_use(&p->cli);
    if (err)
        parts_fini(p);
    return err;
}

void parts_fini(lib_parts *p)
{
    (void)co_cli_use(NULL); /* our rows are no longer used */
    co_pool_fini(&p->pool);
}
