/* server.c -- the board's server: libmicrohttpd with a thread for each connection, so that a run whose disk
 * is slow keeps nobody else waiting (runs.c).
 *
 * The library is loaded at run time, so that the program starts on hosts without it. Requests have no body;
 * what they bring is limited by the library (memory for a connection, number of connections, time). */
#include "web/web_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/library.h"
#include "net/net.h"

enum { TIMEOUT_S = 30, CONNECTION_BYTES = 32 << 10 };
#define COOKIE "cohort_board"

struct co_board {
    struct MHD_Daemon *daemon;
    runs runs;
    guard guard;
    char url[256];
};

/* --- the library -------------------------------------------------------------------------------------- */
static struct {
    struct MHD_Daemon *(*start)(unsigned, uint16_t, MHD_AcceptPolicyCallback, void *,
                                MHD_AccessHandlerCallback, void *, ...);
    void (*stop)(struct MHD_Daemon *);
    const char *(*value)(struct MHD_Connection *, enum MHD_ValueKind, const char *);
    struct MHD_Response *(*response)(size_t, void *, enum MHD_ResponseMemoryMode);
    enum MHD_Result (*header)(struct MHD_Response *, const char *, const char *);
    enum MHD_Result (*queue)(struct MHD_Connection *, unsigned, struct MHD_Response *);
    void (*destroy)(struct MHD_Response *);
    const union MHD_DaemonInfo *(*info)(struct MHD_Daemon *, enum MHD_DaemonInfoType, ...);
} mhd;

static co_err load(void)
{
    static const co_symbol symbols[] = {{"MHD_start_daemon", &mhd.start},
                                        {"MHD_stop_daemon", &mhd.stop},
                                        {"MHD_lookup_connection_value", &mhd.value},
                                        {"MHD_create_response_from_buffer", &mhd.response},
                                        {"MHD_add_response_header", &mhd.header},
                                        {"MHD_queue_response", &mhd.queue},
                                        {"MHD_destroy_response", &mhd.destroy},
                                        {"MHD_get_daemon_info", &mhd.info}};
    const char *missing = NULL;

    if (mhd.start)
        return CO_OK;
    if (co_library_load("libmicrohttpd.so.12", CO_LIBRARY_LOCAL, symbols, CO_COUNT(symbols), &missing))
        return CO_OK;
    mhd.start = NULL;
    return co_fail(CO_EINPUT, "the board needs libmicrohttpd: %s%s; install the package libmicrohttpd12",
                   missing ? "it lacks " : "it is not installed", missing ? missing : "");
}

/* --- one request -------------------------------------------------------------------------------------- */
static void read_ask(ask *a, struct MHD_Connection *c, const char *method, const char *path)
{
    *a = (ask){.method = method,
               .path = path,
               .host = mhd.value(c, MHD_HEADER_KIND, "Host"),
               .origin = mhd.value(c, MHD_HEADER_KIND, "Origin"),
               .site = mhd.value(c, MHD_HEADER_KIND, "Sec-Fetch-Site"),
               .cookie = mhd.value(c, MHD_COOKIE_KIND, COOKIE),
               .token = mhd.value(c, MHD_GET_ARGUMENT_KIND, "token"),
               .run = mhd.value(c, MHD_GET_ARGUMENT_KIND, "run"),
               .names = mhd.value(c, MHD_GET_ARGUMENT_KIND, "names"),
               .by = mhd.value(c, MHD_GET_ARGUMENT_KIND, "by"),
               .from = mhd.value(c, MHD_GET_ARGUMENT_KIND, "from"),
               .to = mhd.value(c, MHD_GET_ARGUMENT_KIND, "to")};
}

static void add_headers(const co_board *b, struct MHD_Response *r, const ask *a, const answer *out)
{
    char cookie[160];

    mhd.header(r, "Content-Type", out->type);
    mhd.header(r, "X-Content-Type-Options", "nosniff");
    mhd.header(r, "X-Frame-Options", "SAMEORIGIN");
    mhd.header(r, "Referrer-Policy", "no-referrer");
    mhd.header(r, "Cache-Control", "no-store");
    mhd.header(r, "Content-Security-Policy",
               out->is_book ? "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
                            : "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
                              "connect-src 'self'; img-src 'self' data:; frame-src 'self'; base-uri 'none'");
    if (*b->guard.token && a->token && out->status == 200) {
        snprintf(cookie, sizeof cookie, COOKIE "=%s; HttpOnly; SameSite=Strict; Path=/", b->guard.token);
        mhd.header(r, "Set-Cookie", cookie);
    }
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *c, const char *path, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **state)
{
    co_board *b = ctx;
    ask a;
    answer out = {0};
    const char *why;

    (void)version, (void)upload, (void)state;
    *upload_size = 0; /* nobody needs a body */
    read_ask(&a, c, method, path);
    out.status = guard_check(&b->guard, &a, &why);
    if (out.status) {
        out.type = "text/plain; charset=utf-8";
        co_str_addf(&out.body, "%s\n", why);
    } else
        answer_make(&out, &b->runs, &a);
    char *body = out.body.len ? out.body.p : "";
    struct MHD_Response *r = mhd.response(out.body.len, body, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result done = MHD_NO;
    if (r) {
        add_headers(b, r, &a, &out);
        done = mhd.queue(c, (unsigned)out.status, r);
        mhd.destroy(r);
    }
    co_str_fini(&out.body);
    return done;
}

/* --- start and stop ----------------------------------------------------------------------------------- */
static void no_log(void *ctx, const char *fmt, va_list ap)
{
    (void)ctx, (void)fmt, (void)ap;
}

static co_err listen_on(co_board *b, const char *address, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
        return co_fail(CO_EINPUT, "--host: %s is no IPv4 address of this machine (0.0.0.0: all)", address);
    b->guard.loopback = ntohl(at.sin_addr.s_addr) >> 24 == 127;
    errno = 0;
    b->daemon = mhd.start(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, handle, b, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&at, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    if (!b->daemon)
        return co_fail(CO_EINPUT, "cannot listen on %s port %d: %m; choose another with --port", address, port);
    const union MHD_DaemonInfo *info = mhd.info(b->daemon, MHD_DAEMON_INFO_BIND_PORT);
    b->guard.port = info ? info->port : port;
    return CO_OK;
}

static co_err choose_token(co_board *b, const char *given, const char *address)
{
    co_token token;
    char text[CO_TOKEN_TEXT];

    if (given && (strlen(given) < 16 || strlen(given) >= sizeof b->guard.token))
        return co_fail(CO_EINPUT, "--token: give 16 to %zu letters", sizeof b->guard.token - 1);
    if (given)
        snprintf(b->guard.token, sizeof b->guard.token, "%s", given);
    else if (strncmp(address, "127.", 4) != 0) {
        CO_TRY(co_token_make(&token));
        co_token_text(text, &token);
        snprintf(b->guard.token, sizeof b->guard.token, "%s", text);
    }
    if (strspn(b->guard.token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") !=
        strlen(b->guard.token))
        return co_fail(CO_EINPUT, "--token: letters, digits, - and _ only");
    return CO_OK;
}

co_err co_board_start(co_board **out, const co_board_spec *spec)
{
    const char *address = spec->address ? spec->address : "127.0.0.1";
    co_board *b = co_zalloc(sizeof *b);

    if (!b)
        return CO_ENOMEM;
    co_err err = load();
    if (!err)
        err = choose_token(b, spec->token, address);
    if (!err)
        err = runs_open(&b->runs, spec->root);
    if (!err)
        err = listen_on(b, address, spec->port);
    if (err) {
        co_board_stop(b);
        return err;
    }
    snprintf(b->url, sizeof b->url, "http://%s:%d/%s%s",
             strcmp(address, "0.0.0.0") == 0 ? "127.0.0.1" : address, b->guard.port,
             *b->guard.token ? "?token=" : "", b->guard.token);
    *out = b;
    return CO_OK;
}

const char *co_board_url(const co_board *board)
{
    return board->url;
}

void co_board_stop(co_board *board)
{
    if (!board)
        return;
    if (board->daemon)
        mhd.stop(board->daemon);
    runs_close(&board->runs);
    co_free(board);
}
