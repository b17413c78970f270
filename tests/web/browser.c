/* browser.c -- WebDriver over a plain socket: one request a connection, JSON in and out. */
#include "browser.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/str.h"
#include "harness.h"

struct browser {
    pid_t driver;
    int port;
    char session[128];
};

/* --- requests ------------------------------------------------------------------------------------------- */
/* chromedriver leaves the connection open: the length says where the answer ends. */
static bool is_whole(const co_str *answer)
{
    const char *text = co_str_text(answer), *body = strstr(text, "\r\n\r\n");
    const char *length = body ? strcasestr(text, "content-length:") : NULL;

    return length && length < body && strlen(body + 4) >= (size_t)atol(length + 15);
}

static char *exchange(int port, const char *request)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char bytes[16384];
    co_str all = {0};
    ssize_t n;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect to chromedriver: %m");
    CHECK(write(fd, request, strlen(request)) == (ssize_t)strlen(request), "write to chromedriver: %m");
    while (!is_whole(&all) && (n = read(fd, bytes, sizeof bytes)) > 0)
        co_str_addn(&all, bytes, (size_t)n);
    close(fd);
    return co_str_take(&all);
}

/* "value" of the answer, the caller's. Takes `body`; NULL: a request without one. */
static json_t *request(const browser *b, const char *method, const char *path, json_t *body)
{
    char *text = body ? co_json_text(body) : co_strdup("");
    char *whole = co_sprintf("%s %s%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
                             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                             method, b->session, path, b->port, strlen(text), text);
    char *answer = exchange(b->port, whole), *start = answer ? strstr(answer, "\r\n\r\n") : NULL;
    json_t *v = NULL;

    CHECK(start, "chromedriver: %s %s: no answer", method, path);
    CHECK_OK(co_json_parse(&v, start + 4, strlen(start + 4), "chromedriver's answer"));
    CHECK(strncmp(answer, "HTTP/1.1 200", 12) == 0, "chromedriver: %s: %s", path, start + 4);
    json_t *value = json_incref(json_object_get(v, "value"));
    json_decref(v);
    json_decref(body);
    co_free(answer);
    co_free(whole);
    co_free(text);
    return value;
}

/* --- start and end -------------------------------------------------------------------------------------- */
static bool driver_is_up(void *ctx)
{
    browser *b = ctx;
    char *text = NULL;
    size_t len;
    static const char words[] = "started successfully on port ";

    if (co_fs_read(&text, &len, "chromedriver.out", 1 << 16) != CO_OK) {
        co_errclear();
        return false;
    }
    const char *at = strstr(text, words);
    b->port = at ? atoi(at + strlen(words)) : 0;
    co_free(text);
    return b->port > 0;
}

static json_t *wishes(int width, int height, bool dark)
{
    json_t *args = json_pack("[s,s,s,s,s,s,s,s]", "--headless", "--no-sandbox", "--disable-gpu",
                             "--disable-quic", "--no-first-run", "--disable-background-networking",
                             "--disable-component-update", "--disable-sync");

    json_array_append_new(args, json_sprintf("--window-size=%d,%d", width, height));
    if (dark)
        json_array_append_new(args, json_string("--blink-settings=preferredColorScheme=0"));
    return json_pack("{s:{s:{s:{s:o}, s:{s:s}}}}", "capabilities", "alwaysMatch", "goog:chromeOptions",
                     "args", args, "goog:loggingPrefs", "browser", "ALL");
}

browser *browser_open(int width, int height, bool dark)
{
    browser *b = calloc(1, sizeof *b);
    test_run r = test_sh("command -v chromium && command -v chromedriver");

    if (r.status != 0)
        test_skip("chromium and chromedriver (packages chromium, chromium-driver) are not installed");
    free(r.out);
    unlink("chromedriver.out");
    b->driver =
        test_spawn("chromedriver.out", "HOME=$PWD exec chromedriver --port=0 --allowed-ips=127.0.0.1");
    test_until(driver_is_up, b, 30, "chromedriver");
    json_t *v = request(b, "POST", "/session", wishes(width, height, dark));
    const char *id = co_json_str(v, "sessionId");
    CHECK(id && strlen(id) < 100, "chromedriver gives no session");
    snprintf(b->session, sizeof b->session, "/session/%s", id);
    json_decref(v);
    return b;
}

void browser_close(browser *b)
{
    json_decref(request(b, "DELETE", "", NULL));
    kill(b->driver, SIGTERM);
    test_wait(b->driver, 10);
    free(b);
}

/* --- what a test does ----------------------------------------------------------------------------------- */
void browser_go(browser *b, const char *url)
{
    json_decref(request(b, "POST", "/url", json_pack("{s:s}", "url", url)));
}

json_t *browser_eval(browser *b, const char *script)
{
    json_t *text = json_sprintf("return (%s);", script);

    return request(b, "POST", "/execute/sync", json_pack("{s:o, s:[]}", "script", text, "args"));
}

double browser_number(browser *b, const char *script)
{
    json_t *v = browser_eval(b, script);

    CHECK(json_is_number(v), "%s is no number", script);
    double x = json_number_value(v);
    json_decref(v);
    return x;
}

char *browser_text(browser *b, const char *script)
{
    json_t *v = browser_eval(b, script);

    CHECK(json_is_string(v), "%s is no text", script);
    char *text = strdup(json_string_value(v));
    json_decref(v);
    return text;
}

typedef struct wanted {
    browser *b;
    char *script;
} wanted;

static bool is_true(void *ctx)
{
    wanted *w = ctx;
    json_t *v = browser_eval(w->b, w->script);
    bool yes = json_is_true(v);

    json_decref(v);
    return yes;
}

void browser_until(browser *b, const char *script, double timeout_s, const char *what)
{
    wanted w = {b, co_sprintf("Boolean(%s)", script)};

    test_until(is_true, &w, timeout_s, what);
    co_free(w.script);
}

static json_t *move(double x, double y)
{
    return json_pack("{s:s, s:i, s:f, s:f}", "type", "pointerMove", "duration", 20, "x", x, "y", y);
}

static json_t *button(const char *what)
{
    return json_pack("{s:s, s:i}", "type", what, "button", 0);
}

static void act(browser *b, json_t *steps)
{
    json_decref(request(b, "POST", "/actions",
                        json_pack("{s:[{s:s, s:s, s:{s:s}, s:o}]}", "actions", "type", "pointer", "id",
                                  "mouse", "parameters", "pointerType", "mouse", "actions", steps)));
}

/* Brings the element into view; its top left corner in the window. */
static void corner(browser *b, const char *selector, double *x, double *y)
{
    char *script =
        co_sprintf("(() => { const e = document.querySelector('%s'); e.scrollIntoView({block: 'center'}); "
                   "const r = e.getBoundingClientRect(); return [r.left, r.top]; })()",
                   selector);
    json_t *v = browser_eval(b, script);

    CHECK(json_array_size(v) == 2, "%s", selector);
    *x = json_number_value(json_array_get(v, 0));
    *y = json_number_value(json_array_get(v, 1));
    json_decref(v);
    co_free(script);
}

void browser_drag(browser *b, const char *selector, int x0, int y0, int x1, int y1)
{
    double x, y;

    corner(b, selector, &x, &y);
    act(b,
        json_pack("[o,o,o,o,o]", move(x + x0, y + y0), button("pointerDown"),
                  move(x + 0.5 * (x0 + x1), y + 0.5 * (y0 + y1)), move(x + x1, y + y1), button("pointerUp")));
}

void browser_double_click(browser *b, const char *selector, int at_x, int at_y)
{
    double x, y;

    corner(b, selector, &x, &y);
    act(b, json_pack("[o,o,o,o,o]", move(x + at_x, y + at_y), button("pointerDown"), button("pointerUp"),
                     button("pointerDown"), button("pointerUp")));
}

void browser_check_quiet(browser *b)
{
    json_t *v = request(b, "POST", "/se/log", json_pack("{s:s}", "type", "browser"));
    char *text = co_json_text(v);

    CHECK(json_is_array(v) && json_array_size(v) == 0, "the console says %s", text);
    co_free(text);
    json_decref(v);
}

void browser_picture(browser *b, const char *path)
{
    json_t *v = request(b, "GET", "/screenshot", NULL);
    FILE *f = fopen("picture.base64", "w");

    CHECK(f && json_is_string(v) && fputs(json_string_value(v), f) >= 0 && fclose(f) == 0, "picture");
    json_decref(v);
    test_run r = test_sh("base64 -d picture.base64 > '%s'", path);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}
