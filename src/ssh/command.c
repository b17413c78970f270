/* command.c -- the command line of ssh. The user's configuration, which `ssh -G HOST` prints, comes first.
 * Time-outs that it does not set we set, so that nothing waits for ever. */
#include "ssh/ssh_int.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "proc/command.h"

/* Takes one word at *at, without its quotes; NULL: a quote is not closed, or no memory. */
static char *take_word(co_pool *pool, const char **at)
{
    co_str s = {0};
    char quote = 0;

    for (; **at && (quote || (**at != ' ' && **at != '\t')); ++*at) {
        if (quote ? **at == quote : **at == '\'' || **at == '"')
            quote = quote ? 0 : **at;
        else
            co_str_addn(&s, *at, 1);
    }
    char *word = quote ? NULL : co_pool_str(pool, co_str_text(&s));
    if (quote)
        co_fail(CO_EINPUT, "a quote is not closed");
    co_str_fini(&s);
    return word;
}

co_err command_split(const char ***out, int *n_out, co_pool *pool, const char *text)
{
    const char **words = co_pool_alloc(pool, (strlen(text) / 2 + 2) * sizeof *words);
    int n = 0;

    if (!words)
        return CO_ENOMEM;
    for (const char *at = text;;) {
        at += strspn(at, " \t");
        if (!*at)
            break;
        if (!(words[n++] = take_word(pool, &at)))
            return co_fail_in(CO_EINPUT, "launch: --ssh=%s", text);
    }
    if (!n)
        return co_fail(CO_EINPUT, "launch: --ssh names no program");
    *out = words;
    *n_out = n;
    return CO_OK;
}

static void take_setting(ssh_config *c, const char *key, const char *value)
{
    bool none = strcmp(value, "none") == 0 || strcmp(value, "0") == 0;

    if (strcmp(key, "hostname") == 0)
        snprintf(c->hostname, sizeof c->hostname, "%s", value);
    else if (strcmp(key, "user") == 0)
        snprintf(c->user, sizeof c->user, "%s", value);
    else if (strcmp(key, "port") == 0)
        c->port = atoi(value);
    else if (strcmp(key, "proxyjump") == 0 || strcmp(key, "proxycommand") == 0)
        c->proxied = c->proxied || !none;
    else if (strcmp(key, "connecttimeout") == 0)
        c->connect_timeout = !none;
    else if (strcmp(key, "serveraliveinterval") == 0)
        c->alive = !none;
    else if (strcmp(key, "remotecommand") == 0)
        c->remote_command = !none;
}

void config_ask(ssh_config *out, const char *const *ssh, int n_ssh, const char *name)
{
    enum { MOST = 1 << 16 };
    const char **argv = co_array((size_t)n_ssh + 3, sizeof *argv);
    char *text = co_alloc(MOST), *rest = text, *line;
    const char *at = strrchr(name, '@');

    *out = (ssh_config){0};
    snprintf(out->hostname, sizeof out->hostname, "%s", at ? at + 1 : name);
    if (argv && text) {
        memcpy(argv, ssh, (size_t)n_ssh * sizeof *argv);
        argv[n_ssh] = "-G";
        argv[n_ssh + 1] = name;
        out->known = co_command_read(text, MOST, argv, CONFIG_MS / 1000.0) == CO_OK;
    }
    while (out->known && (line = strsep(&rest, "\n"))) {
        char *value = line + strcspn(line, " ");
        if (*value)
            *value++ = '\0';
        take_setting(out, line, value);
    }
    co_free(text);
    co_free(argv);
}

/* Is it this host's own name, whole or up to its first dot? The name need not resolve. */
static bool is_own_name(const char *name)
{
    char own[CO_HOST_NAME] = "";
    size_t n = strlen(name);

    gethostname(own, sizeof own - 1);
    size_t whole = strlen(own), brief = strcspn(own, ".");
    return n && (n == whole || n == brief) && strncasecmp(name, own, n) == 0;
}

/* A name that leads to one of our addresses with another port, user or proxy is not this host: it may be a
 * container or a tunnel. */
bool config_is_here(const ssh_config *c, const char *name, const co_patience *p)
{
    const struct passwd *me = getpwuid(geteuid());
    co_addr a[8];
    int n = 0;

    if (strcmp(name, "localhost") == 0)
        return true;
    if (!c->known || c->port != 22 || c->proxied || !me || strcmp(me->pw_name, c->user) != 0)
        return false;
    if (is_own_name(c->hostname))
        return true;
    if (co_net_resolve(a, (int)CO_COUNT(a), &n, c->hostname, 22, p)) {
        co_errclear(); /* ssh will report it */
        return false;
    }
    for (int i = 0; i < n; i++)
        if (co_addr_is_loopback(&a[i]) || co_addr_is_mine(&a[i]))
            return true;
    return false;
}

char **command_words(co_pool *pool, const char *const *ssh, int n_ssh, const ssh_config *c, const char *name,
                     bool may_ask, const char *remote)
{
    char **w = co_pool_alloc(pool, (size_t)(n_ssh + 16) * sizeof *w);
    int n = 0;

    if (!w)
        return NULL;
    for (; n < n_ssh; n++)
        w[n] = co_pool_str(pool, ssh[n]);
    w[n++] = "-T"; /* no terminal there, whatever RequestTTY says */
    if (!may_ask)
        w[n++] = "-oBatchMode=yes";
    if (!c->connect_timeout)
        w[n++] = co_pool_printf(pool, "-oConnectTimeout=%d", CONNECT_S);
    if (!c->alive) {
        w[n++] = co_pool_printf(pool, "-oServerAliveInterval=%d", ALIVE_S);
        w[n++] = "-oServerAliveCountMax=3";
    }
    w[n++] = "-oClearAllForwardings=yes"; /* only the first ssh could get a forwarded port */
    if (c->remote_command)
        w[n++] = "-oRemoteCommand=none";
    w[n++] = co_pool_str(pool, name);
    w[n++] = co_pool_str(pool, remote);
    w[n] = NULL;
    for (int i = 0; i < n; i++)
        if (!w[i])
            return NULL;
    return w;
}
