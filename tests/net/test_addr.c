/* Endpoints, names, routes, listening, and who holds a port. */
#include "net/net.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

TEST(endpoints_are_read_as_people_write_them)
{
    static const struct {
        const char *text, *host;
        int port;
    } good[] = {{"node0:29400", "node0", 29400},
                {"node0", "node0", -1},
                {"10.0.0.1:0", "10.0.0.1", 0},
                {"[::1]:5", "::1", 5},
                {"::1", "::1", -1},
                {"[fe80::1]", "fe80::1", -1},
                {":29400", "", 29400},
                {"a.b.c:65535", "a.b.c", 65535}};
    co_endpoint e;

    for (size_t i = 0; i < CO_COUNT(good); i++) {
        CHECK_OK(co_endpoint_parse(&e, good[i].text));
        CHECK(strcmp(e.host, good[i].host) == 0 && e.port == good[i].port, "%s: %s and %d", good[i].text,
              e.host, e.port);
    }
    CHECK_FAILS(co_endpoint_parse(&e, "a:65536"), CO_EINPUT, "not a number from 0 to 65535");
    CHECK_FAILS(co_endpoint_parse(&e, "a:"), CO_EINPUT, "the port is \"\"");
    CHECK_FAILS(co_endpoint_parse(&e, "a:x"), CO_EINPUT, "the port is \"x\"");
    CHECK_FAILS(co_endpoint_parse(&e, "[::1"), CO_EINPUT, "without ']'");
    CHECK_FAILS(co_endpoint_parse(&e, "http://a"), CO_EINPUT, "the port is \"//a\"");
    CHECK_FAILS(co_endpoint_parse(&e, "a/b:1"), CO_EINPUT, "write HOST:PORT");
}

TEST(names_resolve_or_say_why_not)
{
    co_patience p = co_patience_s(10);
    co_addr a[4];
    char text[64];
    int n = 0;

    CHECK_OK(co_net_resolve(a, 4, &n, "127.0.0.1", 80, &p));
    co_addr_text(text, sizeof text, &a[0]);
    CHECK(n >= 1 && strcmp(text, "127.0.0.1") == 0 && co_addr_port(&a[0]) == 80, "%d: %s", n, text);
    CHECK(co_addr_is_loopback(&a[0]) && co_addr_is_mine(&a[0]), "loopback is ours");
    CHECK_FAILS(co_net_resolve(a, 4, &n, "no-such-name.invalid", 80, &p), CO_EIO,
                "no-such-name.invalid cannot be resolved");
    atomic_bool stop = true;
    p.give_up = &stop;
    CHECK_FAILS(co_net_resolve(a, 4, &n, "no-such-name.invalid", 80, &p), CO_ESTOP, "asked to stop");
    p = co_patience_s(0);
    CHECK_FAILS(co_net_resolve(a, 4, &n, "no-such-name.invalid", 80, &p), CO_ETIMEOUT, "not resolved in time");
}

TEST(the_route_to_loopback_leaves_from_loopback)
{
    co_patience p = co_patience_s(10);
    co_addr a, mine;
    int n = 0;

    CHECK_OK(co_net_resolve(&a, 1, &n, "127.0.0.1", 80, &p));
    CHECK_OK(co_net_route(&mine, &a));
    CHECK(co_addr_is_loopback(&mine), "left from elsewhere");
    /* an address for documentation: nobody has it */
    CHECK_OK(co_net_resolve(&a, 1, &n, "192.0.2.77", 80, &p));
    CHECK(!co_addr_is_mine(&a), "192.0.2.77 is ours?");
}

TEST(a_taken_port_names_its_holder)
{
    char want[64];
    co_holder who;
    int fd, other, port;

    CHECK_OK(co_net_listen(&fd, "127.0.0.1", 0));
    co_addr at = co_net_local(fd);
    port = co_addr_port(&at);
    snprintf(want, sizeof want, "taken by process %d (", (int)getpid());
    CHECK_FAILS(co_net_listen(&other, "127.0.0.1", port), CO_EIO, want);
    CHECK_FAILS(co_net_listen(&other, "", port), CO_EIO, want);
    CHECK(co_net_holder(&who, port) && who.pid == getpid(), "pid %d", who.pid);
    close(fd);
    CHECK(!co_net_holder(&who, port), "still held by %d", who.pid);
    CHECK_OK(co_net_listen(&fd, "", 0)); /* one socket for IPv6 and IPv4 */
    at = co_net_local(fd);
    CHECK(co_net_holder(&who, co_addr_port(&at)) && who.pid == getpid(), "pid %d", who.pid);
    close(fd);
    CHECK_FAILS(co_net_listen(&fd, "192.0.2.77", 0), CO_EINPUT, "does not have that address");
}

TEST(connecting_tells_nobody_there_from_no_answer)
{
    co_addr to = {.v4 = {.sin_family = AF_INET}};
    co_patience p = co_patience_s(10);
    int fd, n, port;

    CHECK_OK(co_net_free_port(&port));
    CHECK_OK(co_net_resolve(&to, 1, &n, "127.0.0.1", port, &p));
    CHECK_FAILS(co_net_connect(&fd, &to, &p), CO_EPEER, "refuses: nothing listens there");
    CHECK_OK(co_net_listen(&fd, "127.0.0.1", port));
    int mine, extra[2048], k = 0;
    CHECK_OK(co_net_connect(&mine, &to, &p));
    close(mine);
    /* This listener's queue is full and it never accepts. The kernel drops new connections, as a firewall
     * would. */
    double before = co_now_s();
    co_err err = CO_OK;
    for (; k < 2048 && !err; k++) {
        p = co_patience_s(0.3);
        err = co_net_connect(&extra[k], &to, &p);
    }
    CHECK(err == CO_ETIMEOUT && strstr(co_errmsg(), "does not answer"), "%d: %s", err, co_errmsg());
    CHECK(co_now_s() - before < 30, "took %g s", co_now_s() - before);
}
