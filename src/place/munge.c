/* munge.c -- encrypts text with munge, a daemon that runs on every node of most Slurm clusters. Only the
 * same user can decode the result (a credential), on any node of the cluster, once, and within minutes.
 *
 * The library (libmunge.so.2) is loaded when it is needed. Its six calls are declared here: their types have
 * been pointers, ints and enums since 2007. The daemon's socket is the one that AuthInfo in slurm.conf names;
 * without AuthInfo, the library's default.
 */
#include "place/place_int.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/library.h"
#include "proc/command.h"
#include "place/times_int.h"

/* Values of munge.h. */
enum { OPT_CIPHER = 0, OPT_SOCKET = 8, OPT_UID = 9, CIPHER_AES128 = 4 };
typedef struct munge_ctx munge_ctx;

struct munge {
    void *library;
    munge_ctx *ctx;
    munge_ctx *(*create)(void);
    void (*destroy)(munge_ctx *);
    int (*set)(munge_ctx *, int opt, ...);
    const char *(*why)(munge_ctx *);
    int (*encode)(char **credential, munge_ctx *, const void *bytes, int len);
    int (*decode)(const char *credential, munge_ctx *, void **bytes, int *len, uid_t *, gid_t *);
};

static bool load(munge *m)
{
    const co_symbol calls[] = {{"munge_ctx_create", &m->create}, {"munge_ctx_destroy", &m->destroy},
                               {"munge_ctx_set", &m->set},       {"munge_ctx_strerror", &m->why},
                               {"munge_encode", &m->encode},     {"munge_decode", &m->decode}};

    m->library = co_library_load("libmunge.so.2", CO_LIBRARY_LOCAL, calls, CO_COUNT(calls), NULL);
    return m->library != NULL;
}

/* Takes the path out of "socket=/run/munge/munge.socket.2,cred_expire=5". */
static bool socket_of(char *out, size_t size)
{
    static char text[1 << 16]; /* the whole configuration; only the thread that starts a job uses it */
    const char *argv[] = {"scontrol", "show", "config", NULL};
    char info[1024];

    if (co_command_read(text, sizeof text, argv, SCONTROL_S) ||
        !scontrol_value(info, sizeof info, text, "AuthInfo"))
        return false;
    const char *at = strstr(info, "socket=");
    size_t n = at ? strcspn(at + 7, ",") : 0;
    if (n == 0 || n >= size)
        return false;
    memcpy(out, at + 7, n);
    out[n] = '\0';
    return true;
}

co_err munge_open(munge **out)
{
    munge *m = co_zalloc(sizeof *m);
    char socket[512], probe[LOBBY_LINE];
    co_err err = m ? CO_OK : CO_ENOMEM;

    if (!err && !load(m))
        err = co_fail(CO_EIO, "munge's library libmunge.so.2 is not on this host");
    if (!err && !(m->ctx = m->create()))
        err = co_fail(CO_ENOMEM, "munge: no memory");
    if (!err) {
        if (socket_of(socket, sizeof socket))
            m->set(m->ctx, OPT_SOCKET, socket);
        err = munge_wrap(m, probe, sizeof probe, "probe");
    }
    if (err) {
        munge_close(m);
        return err;
    }
    *out = m;
    return CO_OK;
}

void munge_close(munge *m)
{
    if (m && m->ctx)
        m->destroy(m->ctx);
    if (m && m->library)
        dlclose(m->library);
    co_free(m);
}

co_err munge_wrap(munge *m, char *out, size_t size, const char *text)
{
    char *credential = NULL;

    /* The text contains a token: encrypt it, for this user alone, whatever the daemon's defaults are. Do
     * this before every call: munge_decode overwrites the settings with those of the credential that it
     * decoded, which may be a stranger's. */
    if (m->set(m->ctx, OPT_CIPHER, CIPHER_AES128) != 0 || m->set(m->ctx, OPT_UID, geteuid()) != 0)
        return co_fail(CO_EIO, "munge cannot encrypt for one user: %s", m->why(m->ctx));
    if (m->encode(&credential, m->ctx, text, (int)strlen(text)) != 0 || !credential)
        return co_fail(CO_EIO, "munge gives no credential: %s", m->why(m->ctx));
    size_t n = strlen(credential);
    if (n < size)
        memcpy(out, credential, n + 1);
    explicit_bzero(credential, n);
    free(credential); /* the library's own malloc */
    return n < size ? CO_OK : co_fail(CO_EIO, "munge gives a credential of %zu bytes, too long", n);
}

co_err munge_unwrap(munge *m, char *out, size_t size, const char *credential)
{
    void *bytes = NULL;
    int len = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    co_err err = CO_OK;

    if (m->decode(credential, m->ctx, &bytes, &len, &uid, &gid) != 0)
        err = co_fail(CO_EINPUT, "munge refuses the credential: %s", m->why(m->ctx));
    else if (uid != geteuid())
        err = co_fail(CO_EINPUT, "the credential belongs to user %u, not to %u", (unsigned)uid,
                      (unsigned)geteuid());
    else if (!bytes || len <= 0 || (size_t)len >= size || memchr(bytes, 0, (size_t)len))
        err = co_fail(CO_EINPUT, "the credential holds %d bytes that are not text of ours", len);
    else {
        memcpy(out, bytes, (size_t)len);
        out[len] = '\0';
    }
    if (bytes && len > 0)
        explicit_bzero(bytes, (size_t)len);
    free(bytes);
    return err;
}
