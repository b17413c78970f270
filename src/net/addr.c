/* addr.c -- endpoints in the form that people write, and addresses in the form that the kernel uses. */
#include "net/net.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

co_err co_endpoint_parse(co_endpoint *out, const char *text)
{
    const char *colon = strrchr(text, ':'), *port = NULL, *host = text;
    size_t len = strlen(text);
    long long number = -1;

    if (*text == '[') {
        const char *end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':'))
            return co_fail(CO_EINPUT, "endpoint %s: '[' without ']', or text other than :PORT after ']'", text);
        host = text + 1;
        len = (size_t)(end - host);
        port = end[1] ? end + 2 : NULL;
    } else if (colon && strchr(text, ':') == colon) { /* several colons: an IPv6 address without port */
        len = (size_t)(colon - text);
        port = colon + 1;
    }
    if (port && (!co_str_to_i64(port, &number) || number < 0 || number > 65535))
        return co_fail(CO_EINPUT, "endpoint %s: the port is \"%s\", not a number from 0 to 65535", text, port);
    if (len >= sizeof out->host)
        return co_fail(CO_EINPUT, "endpoint: the host name has %zu letters, more than %d", len,
                       CO_NAME_MOST - 1);
    for (size_t i = 0; i < len; i++)
        if (host[i] <= ' ' || host[i] == '/' || host[i] == 0x7f)
            return co_fail(CO_EINPUT, "endpoint: the host name contains a blank or '/'; write HOST:PORT");
    memcpy(out->host, host, len);
    out->host[len] = '\0';
    out->port = (int)number;
    return CO_OK;
}

void co_endpoint_text(char *out, size_t size, const char *host, int port)
{
    snprintf(out, size, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

socklen_t co_addr_len(const co_addr *a)
{
    return a->sa.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
}

int co_addr_port(const co_addr *a)
{
    return ntohs(a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

void co_addr_set_port(co_addr *a, int port)
{
    if (a->sa.sa_family == AF_INET6)
        a->v6.sin6_port = htons((uint16_t)port);
    else
        a->v4.sin_port = htons((uint16_t)port);
}

/* Turns an IPv4 address that came through an IPv6 socket back into plain IPv4. */
static co_addr plain(const co_addr *a)
{
    co_addr b = *a;

    if (a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr)) {
        b = (co_addr){.v4 = {.sin_family = AF_INET, .sin_port = a->v6.sin6_port}};
        memcpy(&b.v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, 4);
    }
    return b;
}

void co_addr_text(char *out, size_t size, const co_addr *a)
{
    co_addr b = plain(a);

    if (getnameinfo(&b.sa, co_addr_len(&b), out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(out, size, "?");
}

bool co_addr_same_host(const co_addr *a, const co_addr *b)
{
    co_addr x = plain(a), y = plain(b);

    if (x.sa.sa_family != y.sa.sa_family)
        return false;
    if (x.sa.sa_family == AF_INET)
        return x.v4.sin_addr.s_addr == y.v4.sin_addr.s_addr;
    return x.sa.sa_family == AF_INET6 && memcmp(&x.v6.sin6_addr, &y.v6.sin6_addr, 16) == 0;
}

bool co_addr_is_loopback(const co_addr *a)
{
    co_addr b = plain(a);

    if (b.sa.sa_family == AF_INET)
        return ntohl(b.v4.sin_addr.s_addr) >> 24 == 127;
    return b.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&b.v6.sin6_addr);
}

bool co_host_is_loopback(const char *name)
{
    return strcasecmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0;
}

/* False: the interface has no IP address. */
static bool address_of(co_addr *out, const struct ifaddrs *i)
{
    int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

    if (family != AF_INET && family != AF_INET6)
        return false;
    *out = (co_addr){0};
    memcpy(out, i->ifa_addr, family == AF_INET ? sizeof out->v4 : sizeof out->v6);
    return true;
}

bool co_addr_is_mine(const co_addr *a)
{
    struct ifaddrs *all = NULL;
    bool mine = co_addr_is_loopback(a);

    if (mine || getifaddrs(&all) != 0)
        return mine;
    for (struct ifaddrs *i = all; i && !mine; i = i->ifa_next) {
        co_addr b;
        mine = address_of(&b, i) && co_addr_same_host(a, &b);
    }
    freeifaddrs(all);
    return mine;
}

bool co_net_interface(char *out, size_t size, const char *addr)
{
    struct ifaddrs *all = NULL;
    bool found = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        char text[CO_NAME_MOST];
        co_addr a;
        if (!address_of(&a, i) || co_addr_is_loopback(&a))
            continue;
        co_addr_text(text, sizeof text, &a);
        found = strcmp(text, addr) == 0;
        if (found)
            snprintf(out, size, "%s", i->ifa_name);
    }
    freeifaddrs(all);
    return found;
}

/* Bridges and virtual cables that lead to containers on this host, not to other hosts. */
static bool is_inward(const char *interface)
{
    static const char *const names[] = {"docker", "br-", "veth", "virbr", "lxc", "lxd", "cni", "podman"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(interface, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void add_mine(char *out, size_t size, const struct ifaddrs *i)
{
    size_t n = strlen(out);
    char text[CO_NAME_MOST];
    co_addr a;

    if (!address_of(&a, i) || !(i->ifa_flags & IFF_UP))
        return;
    if (co_addr_is_loopback(&a) || (a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.v6.sin6_addr)))
        return;
    co_addr_text(text, sizeof text, &a);
    if (n + strlen(text) + 2 <= size)
        snprintf(out + n, size - n, "%s%s", n ? "," : "", text);
}

void co_addr_mine(char *out, size_t size)
{
    struct ifaddrs *all = NULL;

    *out = '\0';
    if (getifaddrs(&all) != 0)
        return;
    for (int inward = 0; inward < 2; inward++)
        for (struct ifaddrs *i = all; i; i = i->ifa_next)
            if (is_inward(i->ifa_name) == (inward == 1))
                add_mine(out, size, i);
    freeifaddrs(all);
}
