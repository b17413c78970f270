/* curl_int.h -- the part of libcurl that we use. It is declared here, so that neither the build nor the start
 * of the program needs libcurl.
 *
 * Functions and numbers are those of curl 7.88.1. They belong to an ABI that has not changed since 2006. The
 * newest function is curl_multi_poll, of curl 7.66 (2019).
 */
#ifndef CO_NET_CURL_INT_H
#define CO_NET_CURL_INT_H

#include "net/http.h"

/* curl.h: 0 + n for long, 10000 + n for pointers, 20000 + n for functions, 30000 + n for curl_off_t. */
enum {
    OPT_WRITEDATA = 10001,
    OPT_URL = 10002,
    OPT_ERRORBUFFER = 10010,
    OPT_WRITEFUNCTION = 20011,
    OPT_POSTFIELDS = 10015,
    OPT_USERAGENT = 10018,
    OPT_HTTPHEADER = 10023,
    OPT_SSLCERT = 10025,
    OPT_HEADERDATA = 10029,
    OPT_CUSTOMREQUEST = 10036,
    OPT_NOBODY = 44,
    OPT_FOLLOWLOCATION = 52,
    OPT_MAXREDIRS = 68,
    OPT_SSL_VERIFYPEER = 64,
    OPT_CAINFO = 10065,
    OPT_SSL_VERIFYHOST = 81,
    OPT_HEADERFUNCTION = 20079,
    OPT_SSLKEY = 10087,
    OPT_NOSIGNAL = 99,
    OPT_POSTFIELDSIZE_LARGE = 30120,
    OPT_NOPROXY = 10177,
    OPT_PROTOCOLS = 181,
    OPT_REDIR_PROTOCOLS = 182,
    PROTO_HTTPS = 2,
    PROTO_HTTP_AND_S = 3,
    INFO_RESPONSE_CODE = 0x200002,
    INFO_NAMELOOKUP_TIME_T = 0x600033,
    INFO_PRETRANSFER_TIME_T = 0x600035,
    ERROR_SIZE = 256,
    E_UNSUPPORTED_PROTOCOL = 1,
    E_URL_MALFORMAT = 3,
    E_COULDNT_CONNECT = 7,
    E_WEIRD_SERVER_REPLY = 8,
    E_PARTIAL_FILE = 18,
    E_WRITE_ERROR = 23,
    E_TOO_MANY_REDIRECTS = 47,
    E_GOT_NOTHING = 52,
    E_SEND_ERROR = 55,
    E_RECV_ERROR = 56,
    E_SSL_CERTPROBLEM = 58,
    E_BAD_CONTENT_ENCODING = 61,
    E_SSL_CACERT_BADFILE = 77
};

struct curl_message {
    int what; /* 1: done */
    void *easy;
    union {
        void *pointer;
        int result;
    } data;
};

extern struct curl_calls {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    const char *(*easy_strerror)(int code);
    void (*easy_reset)(void *easy);
    void (*easy_cleanup)(void *easy);
    void *(*slist_append)(void *list, const char *text);
    void (*slist_free_all)(void *list);
    void *(*multi_init)(void);
    int (*multi_add_handle)(void *multi, void *easy);
    int (*multi_remove_handle)(void *multi, void *easy);
    int (*multi_perform)(void *multi, int *running);
    int (*multi_poll)(void *multi, void *fds, unsigned n, int timeout_ms, int *got);
    struct curl_message *(*multi_info_read)(void *multi, int *left);
    int (*multi_cleanup)(void *multi);
} curl;

/* Loads libcurl once per process. CO_EINPUT: it is not installed, or too old. */
co_err curl_load(void);

/* The handles that one transfer at a time needs. */
typedef struct curl_pair {
    void *easy, *multi;
} curl_pair;
co_err curl_pair_open(curl_pair *out);
void curl_pair_close(curl_pair *pair);
/* Ends the transfer without waiting for a name server, as curl would. Takes ownership of headers. */
void curl_pair_abandon(curl_pair *pair, void *headers);

#endif
