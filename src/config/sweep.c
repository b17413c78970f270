/* sweep.c -- turns words with alternatives into the words of each job: the product, the last word fastest.
 *
 *     optim.lr=0.1,0.01 seed=range(1,3)    0: optim.lr=0.1 seed=1   1: optim.lr=0.1 seed=2   2: optim.lr=0.01
 *     ...
 *
 * glob() gives the choices of its group. The words of all jobs are kept in memory; there may be 10000 jobs.
 */
#include "config/config_int.h"

#include <fnmatch.h>
#include <string.h>

enum { MAX_JOBS = 10000 };

struct co_conf_jobs {
    co_pool pool;
    int n, n_words;
    const char ***words; /* of each job */
    bool *swept;
};

/* What one word may be. */
typedef struct axis {
    const char **words;
    int n;
} axis;

static bool matches(const conf_value *pattern, const char *name)
{
    bool any = false;
    if (pattern && (pattern->kind == CONF_PLAIN || pattern->kind == CONF_STRING))
        return fnmatch(pattern->text, name, 0) == 0;
    for (int i = 0; pattern && i < pattern->n && !any; i++)
        any = matches(&pattern->items[i], name);
    return any;
}

/* glob(pattern,exclude=pattern) as the group's choices that match. */
static co_err glob(conf_value *v, co_pool *pool, const co_conf_spec *spec, const char *word, const char *key)
{
    const char **names;
    int n, g = conf_group_index(spec, key, strlen(key));
    const conf_value *wanted = NULL, *unwanted = NULL;
    conf_value out = {CONF_SWEEP};
    for (int i = 0; i < v->n; i++) {
        if (v->keys[i] && strcmp(v->keys[i], "exclude") == 0)
            unwanted = &v->items[i];
        else if (!wanted && !v->keys[i])
            wanted = &v->items[i];
        else
            wanted = NULL;
    }
    if (!wanted)
        return co_fail(CO_EINPUT, "%s: write glob(pattern) or glob(pattern,exclude=pattern)", word);
    if (g < 0)
        return co_fail(CO_EINPUT, "%s: glob() chooses files of a group, and %s is none", word, key);
    CO_TRY(conf_choices(&names, &n, pool, spec, &spec->groups[g]));
    for (int i = 0; i < n; i++)
        if (matches(wanted, names[i]) && !matches(unwanted, names[i]))
            CO_TRY(conf_value_add(&out, pool, NULL, (conf_value){CONF_STRING, names[i]}));
    if (out.n == 0)
        return co_fail(CO_EINPUT, "%s: no %s matches", word, key);
    *v = out;
    return CO_OK;
}

static co_err add_word(axis *a, co_pool *pool, const char *head, size_t head_len, const conf_value *v)
{
    co_str s = {0};
    co_str_addn(&s, head, head_len);
    if (v)
        conf_value_write(&s, v);
    co_err err = co_str_err(&s);
    if (!err && !(a->words[a->n++] = co_pool_str(pool, co_str_text(&s))))
        err = CO_ENOMEM;
    co_str_fini(&s);
    return err;
}

static co_err read_axis(axis *a, bool *swept, co_pool *pool, const co_conf_spec *spec, const char *word)
{
    const char *key, *text;
    conf_op op;
    conf_value v = {0};
    CO_TRY(conf_word_split(pool, word, &key, &text, &op));
    if (text) {
        CO_TRY(conf_value_parse(&v, pool, word, text));
        CO_TRY(conf_value_eval(&v, pool, word));
        if (v.kind == CONF_CALL)
            CO_TRY(glob(&v, pool, spec, word, key));
    }
    *swept = v.kind == CONF_SWEEP;
    a->words = co_pool_alloc(pool, ((size_t)v.n + 1) * sizeof *a->words);
    if (!a->words)
        return CO_ENOMEM;
    if (!*swept) /* as it was written */
        return add_word(a, pool, word, strlen(word), NULL);
    if (op == CONF_DELETE)
        return co_fail(CO_EINPUT, "%s: ~key takes one value", word);
    for (int i = 0; i < v.n; i++) {
        if (v.items[i].kind == CONF_SWEEP || v.items[i].kind == CONF_CALL)
            return co_fail(CO_EINPUT, "%s: alternatives inside alternatives; write one list", word);
        CO_TRY(add_word(a, pool, word, (size_t)(text - word), &v.items[i]));
    }
    return CO_OK;
}

static co_err expand(co_conf_jobs *j, const co_conf_spec *spec, const char *const *words, int n)
{
    axis *axes = co_pool_alloc(&j->pool, ((size_t)n + 1) * sizeof *axes);
    j->swept = co_pool_alloc(&j->pool, (size_t)n + 1);
    if (!axes || !j->swept)
        return CO_ENOMEM;
    j->n = 1;
    j->n_words = n;
    for (int i = 0; i < n; i++) {
        CO_TRY(read_axis(&axes[i], &j->swept[i], &j->pool, spec, words[i]));
        if (axes[i].n > MAX_JOBS / j->n)
            return co_fail(CO_EINPUT, "%s makes more than %d jobs; sweep over fewer values", words[i],
                           MAX_JOBS);
        j->n *= axes[i].n;
    }
    j->words = co_pool_alloc(&j->pool, (size_t)j->n * sizeof *j->words);
    for (int k = 0; j->words && k < j->n; k++) {
        j->words[k] = co_pool_alloc(&j->pool, ((size_t)n + 1) * sizeof **j->words);
        if (!j->words[k])
            return CO_ENOMEM;
        for (int i = n - 1, rest = k; i >= 0; i--) {
            j->words[k][i] = axes[i].words[rest % axes[i].n];
            rest /= axes[i].n;
        }
    }
    return j->words ? CO_OK : CO_ENOMEM;
}

co_err co_conf_sweep(co_conf_jobs **out, const co_conf_spec *spec, const char *const *words, int n)
{
    co_conf_jobs *j = co_zalloc(sizeof *j);
    if (!j)
        return CO_ENOMEM;
    co_err err = expand(j, spec, words, n);
    if (err)
        co_conf_jobs_free(j);
    else
        *out = j;
    return err;
}

void co_conf_jobs_free(co_conf_jobs *j)
{
    if (!j)
        return;
    co_pool_fini(&j->pool);
    co_free(j);
}

int co_conf_jobs_count(const co_conf_jobs *j)
{
    return j->n;
}

const char *const *co_conf_jobs_words(const co_conf_jobs *j, int job)
{
    return j->words[job];
}

bool co_conf_jobs_swept(const co_conf_jobs *j, int word)
{
    return j->swept[word];
}
