/* decline.c -- a host that was to take part and cannot says so to the host that keeps the roster, so that
 * nobody waits for it without knowing why. It has no seat: LEAVE is the first frame of its connection. The
 * other side's part is in hello.c. */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "roster/net/frame_int.h"
#include "roster/net/role_int.h"
#include "roster/times_int.h"

static void hush(void *ctx, const char *line)
{
    (void)ctx, (void)line;
}

static void say(co_conn *conn, const co_meet *where, const char *why)
{
    co_patience soon = co_patience_s(FAREWELL_MS / 1000.0);
    char host[CO_HOST_NAME];

    host_own_name(host, sizeof host, where);
    if (frame_send(
            conn, FRAME_LEAVE, 0, 0,
            json_pack("{si so so}", "status", 2, "host", co_json_string(host), "text", co_json_string(why))))
        return;
    while (!co_conn_settled(conn) && co_now_ns() < soon.until_ns && !co_conn_work(conn))
        poll(NULL, 0, FAREWELL_TURN_MS);
}

void co_roster_decline(const co_terms *terms, const co_meet *where, const char *why)
{
    co_patience soon = co_patience_s(CONNECT_MS / 1000.0);
    reached to = {0};
    co_tls *tls = NULL;
    role mine;

    if (where->etcd.members || role_decide(&mine, terms, where) != CO_OK)
        return;
    if (mine.serves)
        close(mine.listener);
    else if ((!mine.tls || co_tls_new(&tls, &mine.token, terms->run_id) == CO_OK) &&
             reach_roster(&to, &mine, tls, &soon, hush, NULL) == CO_OK)
        say(to.conn, where, why);
    co_conn_free(to.conn);
    co_tls_free(tls);
}
