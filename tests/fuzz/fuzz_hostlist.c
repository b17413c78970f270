/* fuzz_hostlist.c -- any text as what a scheduler, PMI, scontrol or another launcher says. Names must be
 * whole and in bounds, and the list must give the same however it is asked; a card that is taken must print
 * back to what it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "place/place_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void read_list(const char *text)
{
    char first[64], last[64], again[64];
    int n = 0, m = 0, here, most, nodes;

    if (hostlist_get(first, sizeof first, &n, text, 0) == CO_OK) {
        if (n < 1 || n > HOSTS_MOST || !*first || strpbrk(first, "[], \n"))
            abort();
        if (hostlist_get(last, sizeof last, &m, text, n - 1) != CO_OK || m != n)
            abort();
        if (hostlist_get(again, sizeof again, &m, text, n) != CO_EINPUT)
            abort();
    }
    for (int node = 0; node < 3; node++)
        if (tasks_parse(&here, &most, &nodes, text, node) == CO_OK &&
            (here < 1 || here > most || most > HOSTS_MOST || nodes <= node || nodes > HOSTS_MOST))
            abort();
}

/* Every rank gets a host, the same ones however many ranks there are. */
static void read_mapping(const char *text)
{
    int host[64], fewer[7];

    memset(host, -1, sizeof host);
    bool taken = pmi_hosts(host, 64, text);
    if (pmi_hosts(fewer, 7, text) != taken)
        abort();
    for (int r = 0; taken && r < 64; r++)
        if (host[r] < 0 || (r < 7 && fewer[r] != host[r]))
            abort();
}

static void read_words(const char *text)
{
    static const char *const keys[] = {"cmd", "rc", "kvsname", "value", "NodeAddr", "AuthInfo"};
    char value[32], back[CARD_TEXT];
    card c;
    int seat;

    for (size_t i = 0; i < CO_COUNT(keys); i++) {
        if (pmi_value(value, sizeof value, text, keys[i]) &&
            (strlen(value) >= sizeof value || strpbrk(value, " \n")))
            abort();
        if (scontrol_value(value, sizeof value, text, keys[i]) && (!*value || strpbrk(value, " \n")))
            abort();
    }
    if (lobby_greeted(&seat, text, "run7", 9) && (seat < 1 || seat > 8))
        abort();
    if (card_parse(&c, text) == CO_OK && (card_text(back, &c) != CO_OK || strcmp(back, text) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char *text = malloc(len + 1); /* exactly as long: one byte too far is seen */

    if (!text)
        return 0;
    memcpy(text, bytes, len);
    text[len] = '\0';
    if (strlen(text) == len) {
        read_list(text);
        read_mapping(text);
        read_words(text);
    }
    free(text);
    return 0;
}
