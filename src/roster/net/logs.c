/* logs.c -- lines that hosts log, on their way to the host that keeps the roster.
 *
 *     agent --queue--> carrier --frames--> server --queue--> the keeper's agent
 */
#include <string.h>

#include "roster/net/network_int.h"

enum {
    LOG_UNSENT = 1 << 18, /* while this many bytes wait in the connection, the carrier takes no more lines */
    LOG_FRAME = 1 << 16   /* about the length of a frame; other frames may go between two of them */
};

/* How much of `lines` goes into one frame: whole lines, or a part of a line that is longer than a frame. */
static size_t cut(const char *lines, size_t n)
{
    if (n <= LOG_FRAME)
        return n;
    const char *end = memrchr(lines, '\n', LOG_FRAME);
    if (!end)
        end = memchr(lines + LOG_FRAME, '\n', n - LOG_FRAME);
    size_t whole = end ? (size_t)(end - lines) + 1 : n;
    return whole < CO_FRAME_MOST ? whole : CO_FRAME_MOST;
}

void logs_end(network *net)
{
    client *cl = &net->client;

    if (cl->conn && cl->logs && !cl->logged && !queue_has_log(&net->queue))
        cl->logged = client_say(cl, FRAME_LOGGED, NULL) == CO_OK;
}

void logs_carry(network *net)
{
    client *cl = &net->client;

    atomic_store(&net->log_wanted, cl->conn && cl->logs);
    if (!cl->conn || !cl->logs || co_conn_unsent(cl->conn) > LOG_UNSENT)
        return;
    co_str lines = queue_take_log(&net->queue);
    for (size_t at = 0, n; at < lines.len; at += n) {
        n = cut(lines.p + at, lines.len - at);
        if (co_conn_send(cl->conn, &(co_frame){.type = FRAME_LOG,
                                               .run = cl->run,
                                               .view = (uint32_t)cl->view,
                                               .len = (uint32_t)n,
                                               .body = lines.p + at}))
            break; /* the client's next turn finds the broken connection */
    }
    co_str_fini(&lines);
}
