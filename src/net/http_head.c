/* http_head.c -- the few headers of an answer that we use. Lines that are not as expected count as not said.
 * */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "net/http_int.h"

const co_http_head http_no_head = {
    .length = -1, .from = -1, .total = -1, .linked_size = -1, .retry_after_s = -1};

/* A whole number of up to 18 digits at *at; moves *at past it. -1: none is there. */
static int64_t number(const char **at, const char *end)
{
    int64_t x = 0;
    int digits = 0;

    for (; *at < end && isdigit((unsigned char)**at) && digits <= 18; ++*at, digits++)
        x = x * 10 + (**at - '0');
    return digits == 0 || digits > 18 ? -1 : x;
}

static void take_length(co_http_head *head, const char *at, const char *end)
{
    int64_t x = number(&at, end);

    head->length = at == end ? x : -1;
}

/* seconds; a date instead counts as not said */
static void take_retry_after(co_http_head *head, const char *at, const char *end)
{
    int64_t x = number(&at, end);

    head->retry_after_s = at == end ? x : -1;
}

/* "bytes 100-199/1000", a part, of a whole whose length may be a star */
static void take_range(co_http_head *head, const char *at, const char *end)
{
    head->from = head->total = -1;
    if (end - at < 6 || strncasecmp(at, "bytes ", 6) != 0)
        return;
    at += 6;
    int64_t first = number(&at, end);
    if (first >= 0) {
        if (at == end || *at++ != '-' || number(&at, end) < first)
            return;
    } else if (at == end || *at++ != '*') {
        return;
    }
    if (at == end || *at++ != '/')
        return;
    int64_t total = number(&at, end);
    head->from = first;
    head->total = at == end ? total : -1;
}

static void take_etag(co_http_head *head, const char *at, const char *end)
{
    size_t n = (size_t)(end - at);
    bool good = n >= 2 && n < sizeof head->etag && *at == '"' && end[-1] == '"' && !memchr(at, 0, n);

    memcpy(head->etag, at, good ? n : 0); /* a weak one (W/) cannot be used to continue a download */
    head->etag[good ? n : 0] = '\0';
}

static void take_linked(co_http_head *head, const char *at, const char *end)
{
    char hex[65] = "";

    if (at < end && *at == '"' && end - at == 66 && end[-1] == '"') {
        at++;
        end--;
    }
    if (end - at != 64)
        return;
    for (int i = 0; i < 64; i++) {
        if (!isxdigit((unsigned char)at[i]))
            return;
        hex[i] = (char)tolower((unsigned char)at[i]);
    }
    memcpy(head->linked_sha256, hex, sizeof hex);
}

static void take_linked_size(co_http_head *head, const char *at, const char *end)
{
    int64_t x = number(&at, end);

    head->linked_size = at == end ? x : -1;
}

static const struct {
    const char *name;
    void (*take)(co_http_head *head, const char *at, const char *end);
} rows[] = {
    {"content-length", take_length},   {"content-range", take_range},  {"etag", take_etag},
    {"retry-after", take_retry_after}, {"x-linked-etag", take_linked}, {"x-linked-size", take_linked_size}};

/* "HTTP/1.1 206 Partial Content". What the hub said of the linked file holds for the answer it redirects to.
 * */
static void begin(co_http_head *head, const char *at, const char *end)
{
    co_http_head next = http_no_head;

    memcpy(next.linked_sha256, head->linked_sha256, sizeof next.linked_sha256);
    next.linked_size = head->linked_size;
    *head = next;
    while (at < end && *at != ' ')
        at++;
    while (at < end && *at == ' ')
        at++;
    int64_t status = number(&at, end);
    head->status = status >= 100 && status <= 999 ? (int)status : 0;
}

void http_head_line(co_http_head *head, const char *line, size_t len)
{
    const char *end = line + len;

    while (end > line && isspace((unsigned char)end[-1]))
        end--;
    if (end - line > 5 && memcmp(line, "HTTP/", 5) == 0) {
        begin(head, line, end);
        return;
    }
    const char *colon = memchr(line, ':', (size_t)(end - line));
    if (!colon)
        return;
    const char *at = colon + 1;
    while (at < end && isspace((unsigned char)*at))
        at++;
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        if (strlen(rows[i].name) == (size_t)(colon - line) &&
            strncasecmp(rows[i].name, line, (size_t)(colon - line)) == 0)
            rows[i].take(head, at, end);
}
