/* hostfile.c -- parses the names of hosts: a list on the command line, or a file in mpirun's format.
 *
 *     node1 slots=4        # four workers
 *     root@node2
 *
 * Names go to ssh as they are typed, so that the user's ssh configuration applies. A name that could be
 * taken for an option or for shell code is refused. Slots are workers. max_slots has a meaning for mpirun
 * only and is ignored.
 */
#include "ssh/ssh_int.h"

#include <stdio.h>
#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("._-@:%+[]", c) || (unsigned char)c >= 0x80;
}

static co_err check_name(const char *name, size_t len)
{
    const char *at = memrchr(name, '@', len), *colon = memchr(name, ':', len);
    size_t n = at ? len - (size_t)(at + 1 - name) : len;

    if (len >= CO_HOST_NAME)
        return co_fail(CO_EINPUT, "%.30s... is too long for a host's name", name);
    for (size_t i = 0; i < len; i++)
        if (!name[i] || !is_letter(name[i]))
            return co_fail(CO_EINPUT, "%.*s is no name of a host", (int)len, name);
    if (!n || name[0] == '-' || name[0] == '@' || (at && at[1] == '-'))
        return co_fail(CO_EINPUT, "%.*s is no name of a host", (int)len, name);
    if (colon && !memchr(colon + 1, ':', len - (size_t)(colon + 1 - name)))
        return co_fail(CO_EINPUT,
                       "%.*s: a number of workers is slots=N in a --hostfile; a port belongs in "
                       "~/.ssh/config, or in --ssh='ssh -p N'",
                       (int)len, name);
    return CO_OK;
}

/* Appends a host and counts it in *n; the array grows by doubling. */
static co_err add(co_ssh_host **list, int *n, const char *name, size_t len, int slots)
{
    CO_TRY(check_name(name, len));
    if (*n == CO_MAX_HOSTS)
        return co_fail(CO_EINPUT, "more than %d hosts", CO_MAX_HOSTS);
    if ((*n & (*n - 1)) == 0) {
        co_ssh_host *more = co_realloc(*list, (size_t)(*n ? 2 * *n : 1) * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        *list = more;
    }
    co_ssh_host *h = &(*list)[(*n)++];
    *h = (co_ssh_host){.slots = slots};
    memcpy(h->name, name, len);
    return CO_OK;
}

const char *co_ssh_shown(const co_ssh_host *h)
{
    const char *at = strrchr(h->name, '@');

    return at ? at + 1 : h->name;
}

co_err co_ssh_list(co_ssh_host **out, int *n_out, const char *text)
{
    co_ssh_host *list = NULL;
    co_err err = CO_OK;
    int n = 0;

    for (const char *at = text; !err; at++) {
        size_t len = strcspn(at, ",");
        err = len ? add(&list, &n, at, len, 0) : co_fail(CO_EINPUT, "a name is missing in \"%s\"", text);
        at += len;
        if (!*at)
            break;
    }
    if (err) {
        co_free(list);
        return co_fail_in(err, "launch: --hosts");
    }
    *out = list;
    *n_out = n;
    return CO_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Moves *at to the next word of a line and returns its length, 0 at the end. */
static size_t next_word(const char **at, const char *end)
{
    size_t n = 0;

    while (*at < end && is_blank(**at))
        ++*at;
    while (*at + n < end && !is_blank((*at)[n]))
        n++;
    return n;
}

static co_err take_option(int *slots, const char *word, size_t len)
{
    char text[32];
    long long value;
    const char *eq = memchr(word, '=', len);
    size_t key = eq ? (size_t)(eq - word) : len;

    snprintf(text, sizeof text, "%.*s", eq ? (int)(len - key - 1 < 31 ? len - key - 1 : 31) : 0,
             eq ? eq + 1 : "");
    bool number = co_str_to_i64(text, &value) && value >= 1 && value <= CO_MAX_WORKERS;
    if (key == 5 && memcmp(word, "slots", 5) == 0 && number)
        *slots = (int)value;
    else if (key == 5 && memcmp(word, "slots", 5) == 0)
        return co_fail(CO_EINPUT, "slots=%s: a number from 1 to %d is needed", text, CO_MAX_WORKERS);
    else if (key != 9 || (memcmp(word, "max_slots", 9) != 0 && memcmp(word, "max-slots", 9) != 0))
        return co_fail(CO_EINPUT, "\"%.*s\" after the host: only slots=N is known",
                       (int)(len < 40 ? len : 40), word);
    return CO_OK;
}

static co_err take_line(co_ssh_host **list, int *n, const char *at, const char *end)
{
    const char *hash = memchr(at, '#', (size_t)(end - at));
    int slots = 0;

    end = hash ? hash : end;
    size_t len = next_word(&at, end), more;
    const char *name = at;
    if (!len)
        return CO_OK;
    at += len;
    while ((more = next_word(&at, end))) {
        CO_TRY(take_option(&slots, at, more));
        at += more;
    }
    return add(list, n, name, len, slots);
}

co_err co_ssh_hostfile(co_ssh_host **out, int *n_out, const char *bytes, size_t len, const char *path)
{
    co_ssh_host *list = NULL;
    const char *end = bytes + len;
    co_err err = CO_OK;
    int n = 0, number = 1;

    for (const char *at = bytes; at < end && !err; number++) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        const char *stop = nl ? nl : end;
        err = take_line(&list, &n, at, stop);
        if (err)
            co_fail_in(err, "launch: %s line %d", path, number);
        at = nl ? nl + 1 : end;
    }
    if (!err && !n)
        err = co_fail(CO_EINPUT, "launch: no host in %s", path);
    if (err) {
        co_free(list);
        return err;
    }
    *out = list;
    *n_out = n;
    return CO_OK;
}
