/* hosts.c -- the hosts of a training: flags of the line, settings, and the environment together.
 *
 * --nnodes and trainer.num_nodes mean the same, and so do --nproc-per-node and trainer.devices. If a line
 * has both and they differ, it is refused. A setting in a file gives way to a flag.
 */
#include "cli/cli_int.h"

#include <string.h>

#include "job/meet.h"
#include "train/train.h"

/* The value of a host flag, the last one of its name; NULL: not given. */
static const char *flag_value(const line *l, const char *name)
{
    const char *value = NULL;
    size_t n = strlen(name);

    for (int i = 0; i < l->n_host_flags; i++)
        if (strncmp(l->host_flags[i], name, n) == 0 && l->host_flags[i][n] == '=')
            value = l->host_flags[i] + n + 1;
    return value;
}

/* Is `key` a word of the line as typed? The words made of flags are not in `rest`. */
static char *typed_value(const line *l, const char *key)
{
    line typed = {.words = l->rest, .n = l->n_rest};

    return line_value(&typed, key);
}

/* "1:4" and 4 agree: the largest number of hosts. */
static bool agree(const char *flag, const char *key)
{
    const char *colon = strchr(flag, ':');

    return strcmp(colon ? colon + 1 : flag, key) == 0 || (strcmp(flag, "cpu") == 0 && strcmp(key, "auto") == 0);
}

static co_err refuse_both(const line *l, const char *flag, const char *key, const char *what)
{
    const char *a = flag_value(l, flag);
    char *b = typed_value(l, key);
    co_err err = CO_OK;

    if (a && b && !agree(a, b))
        err = co_fail(CO_EINPUT, "%s=%s and %s=%s are both on the line, and both say %s: leave one of them out",
                      flag, a, key, b, what);
    co_free(b);
    return err;
}

/* trainer.num_nodes as a flag would have it; NULL: nobody set it. */
static const char *num_nodes(line *l, const co_conf *conf)
{
    const co_train_cfg *cfg = co_conf_core((co_conf *)(uintptr_t)conf);

    if (!co_conf_is_set(conf, "trainer.num_nodes"))
        return NULL;
    /* files have num_nodes: 1 where the number is left to the command line */
    char *typed = typed_value(l, "trainer.num_nodes");
    bool left_open = !typed && cfg->num_nodes == 1;
    co_free(typed);
    return left_open ? NULL : co_pool_printf(&l->pool, "%lld", (long long)cfg->num_nodes);
}

/* A sweep, or a program that uses the library: this host alone. */
static co_err refuse_hosts(line *l, const co_conf *conf)
{
    const char *n = num_nodes(l, conf);
    bool looks = strcmp(l->command, "test") == 0 || strcmp(l->command, "predict") == 0;

    if (looks || !n || strcmp(n, "1") == 0)
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "trainer.num_nodes=%s: this trains on one host; `cohort train` by itself, without -m, trains "
        "over several",
        n);
}

co_err line_find_hosts(line *l, const co_conf *conf)
{
    if (l->hosts)
        return CO_OK;
    if (!l->typed)
        return refuse_hosts(l, conf);
    CO_TRY(refuse_both(l, "--nnodes", "trainer.num_nodes", "how many hosts there are"));
    CO_TRY(refuse_both(l, "--nproc-per-node", "trainer.devices", "how many ranks this host has"));
    return co_hosts_line_make(&l->hosts, &(co_hosts_ask){l->host_flags, num_nodes(l, conf), l->typed});
}

co_err line_take_hosts(line *l, co_hosts_line *hosts)
{
    char *devices = typed_value(l, "trainer.devices"), *nodes = typed_value(l, "trainer.num_nodes");
    char nproc[16], most[16];
    co_err err = CO_OK;

    l->hosts = hosts;
    l->hosts_given = true;
    snprintf(nproc, sizeof nproc, "%d", hosts->terms.nproc);
    snprintf(most, sizeof most, "%d", hosts->terms.max_hosts);
    if (l->n_host_flags)
        err = co_fail(CO_EINPUT,
                      "%s is about hosts: it goes before the word train, to the command that starts it",
                      l->host_flags[0]);
    else if (devices && hosts->terms.nproc && strcmp(devices, nproc) != 0)
        err = co_fail(
            CO_EINPUT,
            "--nproc-per-node=%s and trainer.devices=%s both say how many ranks this host has: leave one of "
            "them out",
            nproc, devices);
    else if (nodes && strcmp(nodes, most) != 0)
        err = co_fail(
            CO_EINPUT,
            "trainer.num_nodes=%s, but the command that starts this training has %s host%s: leave it out",
            nodes, most, hosts->terms.max_hosts == 1 ? "" : "s");
    if (!err && hosts->terms.nproc) {
        const char *word = co_pool_printf(&l->pool, "trainer.devices=%s", nproc);
        if (word)
            l->words[l->n++] = word;
        else
            err = CO_ENOMEM;
    }
    co_free(devices);
    co_free(nodes);
    return err;
}

co_err line_refuse_hosts(line *l, const char *what)
{
    char count[64];
    co_hosts_line *hosts = l->hosts;

    if (!hosts)
        CO_TRY(co_hosts_line_make(&hosts, &(co_hosts_ask){l->host_flags, NULL, l->typed}));
    bool several = hosts->terms.max_hosts > 1;
    co_hosts_line_count(count, sizeof count, hosts);
    if (hosts != l->hosts)
        co_hosts_line_free(hosts);
    return several ? co_fail(CO_EINPUT,
                             "%s on one host, and the line or the environment has %s: --standalone leaves "
                             "the others out",
                             what, count)
                   : CO_OK;
}
