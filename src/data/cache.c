/* cache.c -- what packed files unpack to, kept on disk so that it is unpacked once.
 *
 * The folder is $COHORT_CACHE, or cohort/ in $XDG_CACHE_HOME or in ~/.cache. In it, H being the SHA-256 of a
 * packed file:
 *
 *     unpacked-1/H          its bytes, unpacked
 *     unpacked-1/H.ok       "SHA-256 LENGTH" of those, written last: without it the bytes are not used
 *     stamps-1/S            H of the file whose device, inode, size and times hash to S: spares hashing it
 *                           again
 *
 * Every file is written under a temporary name and renamed when it is whole. Two who unpack the same file at
 * once write the same bytes, and either rename is good. An entry is hashed before it is used (above 1 GiB
 * only its length is checked), and a damaged one is made anew. A stamp is written only for a file that has
 * not changed for two seconds, because a file that changes twice within one tick of the clock could keep its
 * stamp.
 *
 * Without a folder to write to, or on a full disk, files are unpacked each time they are read; that is no
 * error. The folder may be removed at any time.
 */
#include "data/cache_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"

enum { PIECE = 1 << 20, SETTLED_S = 2, STALE_S = 24 * 3600, NOTE_MOST = 128 };
/* Lengths of a folder's path, of an entry's in it, of a name made from that. */
enum { DIR_LEN = 3800, ENTRY_LEN = 3900, NAME_LEN = 4096 };
static const uint64_t HASHED_MOST = 1u << 30;

/* Up to NOTE_MOST bytes of a small file of ours, as text; "" if it is not there. */
static void read_note(char text[NOTE_MOST], const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, NOTE_MOST - 1);

    text[n > 0 ? n : 0] = 0;
    if (fd >= 0)
        close(fd);
}

static bool is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") == 64;
}

/* --- the hash of a packed file -------------------------------------------------------------------------- */

static void stamp_of(char out[65], const struct stat *st)
{
    uint64_t facts[] = {st->st_dev,
                        st->st_ino,
                        (uint64_t)st->st_size,
                        (uint64_t)st->st_mtim.tv_sec,
                        (uint64_t)st->st_mtim.tv_nsec,
                        (uint64_t)st->st_ctim.tv_sec,
                        (uint64_t)st->st_ctim.tv_nsec};

    co_sha256_of(facts, sizeof facts, out);
}

static bool is_settled(const struct stat *st)
{
    time_t now = time(NULL);

    return now - st->st_mtim.tv_sec > SETTLED_S && now - st->st_ctim.tv_sec > SETTLED_S;
}

static co_err hash_of(char hash[65], const char *path)
{
    char stamps[DIR_LEN], at[ENTRY_LEN], stamp[65], again[65], note[NOTE_MOST];
    struct stat st, after;

    CO_TRY(co_fs_cache(stamps, sizeof stamps, "stamps-1"));
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return co_fail(CO_EIO, "%s is not a file", path);
    stamp_of(stamp, &st);
    snprintf(at, sizeof at, "%s/%s", stamps, stamp);
    read_note(note, at);
    if (is_hash(note)) {
        snprintf(hash, 65, "%.64s", note);
        return CO_OK;
    }
    CO_TRY(co_sha256_of_file(path, hash, NULL));
    if (stat(path, &after) != 0)
        return co_fail(CO_EIO, "stat %s: %m", path);
    stamp_of(again, &after);
    return is_settled(&st) && strcmp(stamp, again) == 0 ? co_fs_write_atomic(at, hash, 64) : CO_OK;
}

/* --- entries -------------------------------------------------------------------------------------------- */

static bool is_good(const char *entry)
{
    char ok[NAME_LEN], note[NOTE_MOST], hash[65];
    uint64_t len = 0;
    struct stat st;

    snprintf(ok, sizeof ok, "%s.ok", entry);
    read_note(note, ok);
    if (!is_hash(note) || sscanf(note + 64, " %" SCNu64, &len) != 1)
        return false;
    if (stat(entry, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != len)
        return false;
    if (len > HASHED_MOST)
        return true;
    return co_sha256_of_file(entry, hash, NULL) == CO_OK && memcmp(hash, note, 64) == 0;
}

/* Unpacks `in` into `fd`, and writes hash and length to `note`. */
static co_err pour(int fd, const char *path, packed *in, char note[NOTE_MOST])
{
    uint8_t *piece = co_alloc(PIECE);
    size_t got = PIECE;
    uint64_t len = 0;
    char hash[65];
    co_sha256 h;
    co_err err = piece ? CO_OK : CO_ENOMEM;

    co_sha256_init(&h);
    while (!err && got == PIECE) {
        err = packed_read(in, piece, PIECE, &got);
        if (err)
            break;
        co_sha256_add(&h, piece, got);
        len += got;
        err = co_fs_write_all(fd, piece, got, path);
    }
    co_sha256_hex(&h, hash);
    snprintf(note, NOTE_MOST, "%s %" PRIu64 "\n", hash, len);
    co_free(piece);
    return err;
}

static co_err make_entry(const char *entry, const char *path, uint64_t most)
{
    static atomic_uint turn;
    char tmp[NAME_LEN], ok[NAME_LEN], note[NOTE_MOST];
    packed *in = NULL;
    co_err err = packed_open(&in, path);
    int fd = -1;

    snprintf(ok, sizeof ok, "%s.ok", entry);
    snprintf(tmp, sizeof tmp, "%s.tmp-%d-%u", entry, (int)getpid(), atomic_fetch_add(&turn, 1));
    if (!err && most)
        packed_limit(in, most);
    if (!err) {
        fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        err = fd < 0 ? co_fail(CO_EIO, "create %s: %m", tmp) : pour(fd, tmp, in, note);
    }
    if (err && in && packed_is_over(in))
        err = CO_EFORMAT;
    packed_close(in);
    if (!err && fsync(fd) != 0)
        err = co_fail(CO_EIO, "fsync %s: %m", tmp);
    if (fd >= 0 && close(fd) != 0 && !err)
        err = co_fail(CO_EIO, "close %s: %m", tmp);
    if (!err && rename(tmp, entry) != 0)
        err = co_fail(CO_EIO, "rename %s to %s: %m", tmp, entry);
    if (fd >= 0 && err)
        unlink(tmp);
    return err ? err : co_fs_write_atomic(ok, note, strlen(note));
}

/* What a killed writer left: temporary files that nobody has touched for a day. */
static co_err sweep(const char *dir)
{
    char **names, path[NAME_LEN];
    size_t n;
    struct stat st;

    CO_TRY(co_fs_list(&names, &n, dir));
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%.255s", dir, names[i]);
        if (strstr(names[i], ".tmp-") && stat(path, &st) == 0 && time(NULL) - st.st_mtim.tv_sec > STALE_S)
            unlink(path);
    }
    co_fs_list_free(names, n);
    return CO_OK;
}

static co_err find_or_make(char entry[ENTRY_LEN], const char *path, uint64_t most)
{
    char dir[DIR_LEN], hash[65], again[65];

    CO_TRY(co_fs_cache(dir, sizeof dir, "unpacked-1"));
    CO_TRY(hash_of(hash, path));
    snprintf(entry, ENTRY_LEN, "%s/%s", dir, hash);
    if (is_good(entry))
        return CO_OK;
    CO_TRY(sweep(dir));
    CO_TRY(make_entry(entry, path, most)); /* CO_EFORMAT: too much comes out */
    CO_TRY(hash_of(again, path));
    if (strcmp(hash, again) == 0)
        return CO_OK;
    unlink(entry); /* it was changed while it was unpacked: what lies there is not what its name says */
    return co_fail(CO_EINPUT, "%s changed while it was read: try again", path);
}

co_err cache_plain(char plain[4096], const char *path, uint64_t most)
{
    char entry[ENTRY_LEN];
    size_t len = strlen(path);

    plain[0] = 0;
    if (len < 3 || (strcmp(path + len - 3, ".xz") != 0 && strcmp(path + len - 3, ".gz") != 0))
        return CO_OK;
    co_err err = find_or_make(entry, path, most);
    if (!err)
        snprintf(plain, 4096, "%s", entry);
    return err == CO_ENOMEM ? err : err == CO_EFORMAT ? CO_EINPUT : CO_OK;
}
