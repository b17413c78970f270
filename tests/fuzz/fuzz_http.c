/* fuzz_http.c -- any bytes as the headers of an answer, line by line, and as the file of a checksum. */
#include <stdlib.h>
#include <string.h>

#include "fetch/fetch_int.h"
#include "net/http_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check(const co_http_head *head)
{
    bool good = (head->status == 0 || (head->status >= 100 && head->status <= 999)) && head->length >= -1 &&
                head->from >= -1 && head->total >= -1 && head->linked_size >= -1 &&
                strlen(head->etag) < sizeof head->etag &&
                (!*head->linked_sha256 || strspn(head->linked_sha256, "0123456789abcdef") == 64);

    if (!good)
        abort();
    if (*head->etag && (head->etag[0] != '"' || head->etag[strlen(head->etag) - 1] != '"'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *text = (const char *)bytes;
    co_http_head head = http_no_head;
    sums sum = {0};

    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - (text + at)) + 1 : len - at;
        http_head_line(&head, text + at, n);
        check(&head);
        at += n;
    }
    if (sums_parse_md5(&sum, text, len) ? strspn(sum.md5, "0123456789abcdef") != 32 : *sum.md5)
        abort();
    return 0;
}
