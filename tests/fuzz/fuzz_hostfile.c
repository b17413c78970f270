/* fuzz_hostfile.c -- any bytes as a list of hosts: what is taken has names that ssh takes for nothing but
 * names, and the same hosts when it is written out and read again. The same bytes as the line that a host is
 * told: what is taken is told again. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ssh/ssh.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_hosts(const co_ssh_host *h, int n)
{
    co_str text = {0};
    co_ssh_host *again = NULL;
    int m = 0;

    for (int i = 0; i < n; i++) {
        CO_ASSERT(h[i].name[0] && h[i].name[0] != '-' && !strpbrk(h[i].name, " \t\r\n#,'\"$`;&|<>()"),
                  h[i].name);
        CO_ASSERT(h[i].slots >= 0 && h[i].slots <= 1024 && *co_ssh_shown(&h[i]), "slots");
        co_str_addf(&text, h[i].slots ? "%s slots=%d\n" : "%s\n", h[i].name, h[i].slots);
    }
    CO_ASSERT(co_ssh_hostfile(&again, &m, co_str_text(&text), text.len, "again") == CO_OK, co_errmsg());
    CO_ASSERT(m == n && memcmp(h, again, (size_t)n * sizeof *h) == 0, "other hosts the second time");
    co_free(again);
    co_str_fini(&text);
}

static void check_order(const co_ssh_order *o)
{
    co_ssh_order again;
    char *line = NULL;

    if (co_ssh_order_text(&line, o))
        return; /* longer than it came: escapes */
    CO_ASSERT(co_ssh_order_parse(&again, line, strlen(line)) == CO_OK, co_errmsg());
    CO_ASSERT(strcmp(o->cwd, again.cwd) == 0 && o->rank == again.rank, "another order the second time");
    co_ssh_order_fini(&again);
    co_free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    co_ssh_host *h = NULL;
    co_ssh_order o;
    int n = 0;

    if (co_ssh_hostfile(&h, &n, (const char *)bytes, len, "list") == CO_OK)
        check_hosts(h, n);
    else
        CO_ASSERT(!h && *co_errmsg(), "refused without a word");
    co_free(h);
    if (co_ssh_order_parse(&o, (const char *)bytes, len) == CO_OK) {
        check_order(&o);
        co_ssh_order_fini(&o);
    }
    return 0;
}
