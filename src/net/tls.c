/* tls.c -- TLS 1.3 with an external pre-shared key, derived from the token, and nothing else.
 *
 * There are no certificates. A server that lacks the key has nothing to offer and ends the handshake. A
 * client refuses every certificate and checks that the key was used. The key exchange is X25519 with the key
 * mixed in (psk_dhe_ke), so a token that leaks later does not decrypt recorded traffic. There are no tickets
 * and no early data, so a replayed handshake cannot finish.
 *
 * The identity is the run id that the client sends, unencrypted; the key depends on the token alone. A host
 * with the right token and another run id therefore completes the handshake; the roster then compares the run
 * ids and its refusal names both.
 */
#include "net/net_int.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct co_tls {
    SSL_CTX *ctx[2]; /* [CO_CONN_CLIENT], [CO_CONN_SERVER] */
    SSL_SESSION *key;
    char identity[CO_NAME_MOST];
};

static int offer(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
    co_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    /* after a HelloRetryRequest for a hash that does not fit our key */
    if (md && EVP_MD_get_type(md) != NID_sha256)
        return 0;
    *id = (const unsigned char *)tls->identity;
    *id_len = strlen(tls->identity);
    SSL_SESSION_up_ref(tls->key);
    *out = tls->key;
    return 1;
}

static int find(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **out)
{
    co_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    SSL_SESSION_up_ref(tls->key);
    *out = tls->key;
    return 1;
}

static SSL_CTX *context(co_tls *tls, co_conn_side side)
{
    SSL_CTX *c = SSL_CTX_new(side == CO_CONN_SERVER ? TLS_server_method() : TLS_client_method());

    if (!c)
        return NULL;
    SSL_CTX_set_app_data(c, tls);
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_quiet_shutdown(c, 1);
    bool ok = SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) && SSL_CTX_set1_groups_list(c, "X25519") &&
              SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256");
    if (side == CO_CONN_SERVER) {
        SSL_CTX_set_psk_find_session_callback(c, find);
    } else {
        SSL_CTX_set_psk_use_session_callback(c, offer);
        /* No authority is trusted, so every certificate is refused. */
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    }
    if (!ok) {
        SSL_CTX_free(c);
        return NULL;
    }
    return c;
}

/* OpenSSL treats a pre-shared key as a session, which expires after five minutes. A token does not expire. */
enum { KEY_LIVES_S = 0x7fffffff };

static SSL_SESSION *key_of(const co_token *token)
{
    static const unsigned char aes[2] = {0x13, 0x01};
    uint8_t text[32] = "cohort psk 1", key[32];
    SSL_CTX *any = SSL_CTX_new(TLS_method());
    SSL *ssl = any ? SSL_new(any) : NULL;
    SSL_SESSION *s = ssl ? SSL_SESSION_new() : NULL;
    const SSL_CIPHER *cipher = s ? SSL_CIPHER_find(ssl, aes) : NULL;

    memcpy(text + 16, token->bits, 16);
    bool ok = cipher && EVP_Digest(text, sizeof text, key, NULL, EVP_sha256(), NULL) &&
              SSL_SESSION_set1_master_key(s, key, sizeof key) && SSL_SESSION_set_cipher(s, cipher) &&
              SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) && SSL_SESSION_set_timeout(s, KEY_LIVES_S);
    OPENSSL_cleanse(text, sizeof text);
    OPENSSL_cleanse(key, sizeof key);
    SSL_free(ssl);
    SSL_CTX_free(any);
    if (!ok) {
        SSL_SESSION_free(s);
        return NULL;
    }
    return s;
}

co_err co_tls_new(co_tls **out, const co_token *token, const char *identity)
{
    co_tls *tls = co_zalloc(sizeof *tls);

    if (!tls)
        return CO_ENOMEM;
    /* The host's OpenSSL configuration file must not change our protocol. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
    snprintf(tls->identity, sizeof tls->identity, "%s", *identity ? identity : "cohort");
    tls->key = key_of(token);
    tls->ctx[CO_CONN_CLIENT] = context(tls, CO_CONN_CLIENT);
    tls->ctx[CO_CONN_SERVER] = context(tls, CO_CONN_SERVER);
    if (!tls->key || !tls->ctx[0] || !tls->ctx[1]) {
        co_tls_free(tls);
        return co_fail(CO_EIO, "TLS cannot be set up: %s", ERR_reason_error_string(ERR_peek_last_error()));
    }
    *out = tls;
    return CO_OK;
}

void co_tls_free(co_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->ctx[0]);
    SSL_CTX_free(tls->ctx[1]);
    SSL_SESSION_free(tls->key);
    co_free(tls);
}

SSL *tls_session(co_tls *tls, co_conn_side side)
{
    SSL *ssl = SSL_new(tls->ctx[side]);

    if (!ssl) {
        co_fail(CO_ENOMEM, "out of memory for a TLS connection");
        return NULL;
    }
    if (side == CO_CONN_SERVER)
        SSL_set_accept_state(ssl);
    else
        SSL_set_connect_state(ssl);
    return ssl;
}

co_err tls_failure(SSL *ssl, int result)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    bool ours = ERR_GET_LIB(code) == ERR_LIB_SSL, closed = SSL_get_error(ssl, result) == SSL_ERROR_ZERO_RETURN;

    ERR_clear_error();
    if (closed)
        return co_fail(CO_EPEER, "the other side closed the connection");
    if (ours && reason == SSL_R_BINDER_DOES_NOT_VERIFY)
        return co_fail(CO_EINPUT, "the other side has another token");
    /* A server that did not find its key in our offer sends one of these alerts. */
    if (ours && (reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER || reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR ||
                 reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE))
        return co_fail(CO_EINPUT, "the other side has another token");
    const char *why = code ? ERR_reason_error_string(code) : NULL;
    return co_fail(CO_EFORMAT, "TLS: %s", why ? why : "not the protocol");
}
