/* variables.c -- --env: variables for the workers, on this host or on all. */
#include "job/launch/launch_int.h"

#include <stdlib.h>
#include <string.h>

/* The length of the NAME that begins here; 0: none does. */
static size_t name_length(const char *word)
{
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return *word >= '0' && *word <= '9' ? 0 : n;
}

/* Adds NAME with its value on this host, or NAME=VALUE. */
static co_err add_variable(const char **env, int *n, co_pool *pool, const char *word, size_t len)
{
    char *entry = co_pool_strn(pool, word, len);
    const char *value;

    if (!entry)
        return CO_ENOMEM;
    size_t name = name_length(entry);
    if (!name || (entry[name] && entry[name] != '='))
        return co_fail(CO_EINPUT, "launch: --env: \"%s\" is neither NAME nor NAME=VALUE", entry);
    if (strncmp(entry, "COHORT_TOKEN", name) == 0 && name == 12)
        return co_fail(CO_EINPUT, "launch: --env: COHORT_TOKEN is not for workers");
    if (*n == LAUNCH_ENV_MOST)
        return co_fail(CO_EINPUT, "launch: --env: more than %d variables", LAUNCH_ENV_MOST);
    if (!entry[name]) {
        if (!(value = getenv(entry)))
            return co_fail(CO_EINPUT, "launch: --env: %s is not set here; %s=VALUE sets it", entry, entry);
        if (!(entry = co_pool_printf(pool, "%s=%s", entry, value)))
            return CO_ENOMEM;
    }
    env[(*n)++] = entry;
    return CO_OK;
}

/* Does a new variable begin after this comma? If not, the comma belongs to the value before it
 * (CUDA_VISIBLE_DEVICES=0,1). */
static bool is_variable(const char *word)
{
    char name[256];
    size_t n = name_length(word);

    if (n == 0 || n >= sizeof name || (word[n] && word[n] != ',' && word[n] != '='))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    return word[n] == '=' || getenv(name);
}

static co_err add_variables(const char **env, int *n, co_pool *pool, const char *list)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        bool has_value = memchr(list, '=', len);
        while (has_value && list[len] && !is_variable(list + len + 1))
            len += 1 + strcspn(list + len + 1, ",");
        CO_TRY(add_variable(env, n, pool, list, len));
        list += len + (list[len] == ',');
    }
    return CO_OK;
}

co_err variables_list(const char **env, co_pool *pool, const launch_args *a, const char *const *always)
{
    int n = 0;

    for (; always && *always; always++)
        if (getenv(*always))
            CO_TRY(add_variables(env, &n, pool, *always));
    int before = n;
    /* --env may be given several times: read all of the line */
    for (int i = 1; a->line[i] && a->line[i] != a->program[0]; i++) {
        const char *name = launch_flag_name(a->line[i]), *eq = strchr(a->line[i], '=');
        if (name && strcmp(name, "--env") == 0)
            CO_TRY(add_variables(env, &n, pool, eq ? eq + 1 : a->line[++i]));
    }
    return n == before && a->env ? add_variables(env, &n, pool, a->env) : CO_OK;
}

co_err variable_set(const char *entry, co_pool *pool)
{
    const char *env[LAUNCH_ENV_MOST + 1] = {0};
    int n = 0;

    CO_TRY(add_variable(env, &n, pool, entry, strlen(entry)));
    char *name = co_pool_strn(pool, env[0], strcspn(env[0], "="));
    return name && setenv(name, strchr(env[0], '=') + 1, 1) == 0 ? CO_OK : CO_ENOMEM;
}

co_err variables_set(const launch_args *a, co_pool *pool)
{
    const char *env[LAUNCH_ENV_MOST + 1] = {0};

    if (a->ssh)
        return co_fail(CO_EINPUT, "launch: --ssh is for --hosts and --hostfile, which are not here");
    CO_TRY(variables_list(env, pool, a, NULL));
    for (int i = 0; env[i]; i++)
        CO_TRY(variable_set(env[i], pool));
    return CO_OK;
}
