/* seen.c -- a hash of every file that was read, to notice files that are replaced while a run uses them.
 *
 * Cost: 8 bytes a file and host, and some 0.3 ns a byte when a file is read. The hash is not cryptographic:
 * it is to notice accidents, and misses one change in 2^64.
 *
 * Kept on disk the table is a mapped file: a header of 128 bytes ("cohort seen 1 N FINGERPRINT", padded with
 * zeros), then n hashes in the byte order of the host. The kernel writes it back whenever it likes. A hash
 * that is lost with the power is a file that counts as not read yet, nothing worse.
 */
#include "data/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { HEADER = 128 };

/* Each step is a bijection of the state for a given word, and of the word for a given state. */
static uint64_t hash_of(const uint8_t *bytes, size_t len)
{
    const uint64_t multiplier = 0x9E3779B97F4A7C15u;
    uint64_t h = len, word;

    for (; len >= sizeof word; bytes += sizeof word, len -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        h = (h ^ word) * multiplier;
        h ^= h >> 32;
    }
    word = 0;
    if (len)
        memcpy(&word, bytes, len);
    h = (h ^ word) * multiplier;
    h ^= h >> 29;
    return h ? h : 1;
}

co_err seen_init(seen *s, uint32_t n)
{
    *s = (seen){.n = n, .hash = co_alloc_shared((size_t)n * sizeof *s->hash)};
    return s->hash ? CO_OK : CO_ENOMEM;
}

bool seen_same(const seen *s, uint32_t i, const void *bytes, size_t len)
{
    uint64_t before = 0, now;

    if (!s->hash)
        return true;
    now = hash_of(bytes, len);
    return atomic_compare_exchange_strong_explicit(&s->hash[i], &before, now, memory_order_relaxed,
                                                   memory_order_relaxed) ||
           before == now;
}

/* A whole file of the right size, mapped; *is_new: its hashes are all zero. */
static co_err map_file(void **map, size_t len, const char *path, const char header[HEADER], bool *is_new)
{
    char have[HEADER];
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    co_err err = CO_OK;

    if (fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    *is_new = fstat(fd, &st) != 0 || (uint64_t)st.st_size != len || pread(fd, have, HEADER, 0) != HEADER ||
              memcmp(have, header, HEADER) != 0;
    if (*is_new) {
        if (ftruncate(fd, 0) != 0 || ftruncate(fd, (off_t)len) != 0)
            err = co_fail(CO_EIO, "resize %s: %m", path);
        else if ((errno = posix_fallocate(fd, 0, (off_t)len)) !=
                 0) /* a full disk: an error here, no SIGBUS later */
            err = co_fail(CO_EIO, "%s: %zu bytes: %m", path, len);
        else if (pwrite(fd, header, HEADER, 0) != HEADER)
            err = co_fail(CO_EIO, "write %s: %m", path);
    }
    *map = err ? MAP_FAILED : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!err && *map == MAP_FAILED)
        err = co_fail(CO_EIO, "map %s: %m", path);
    close(fd);
    return err;
}

co_err seen_keep(seen *s, const char *path, const char fingerprint[65], uint32_t *differs)
{
    size_t len = HEADER + (size_t)s->n * sizeof *s->hash;
    char header[HEADER] = "";
    void *map = NULL;
    bool is_new = false;

    *differs = s->n;
    if (!s->hash)
        return CO_OK;
    snprintf(header, sizeof header, "cohort seen 1 %u %s", s->n, fingerprint);
    CO_TRY(map_file(&map, len, path, header, &is_new));
    _Atomic uint64_t *kept = (_Atomic uint64_t *)(void *)((char *)map + HEADER);
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t old = atomic_load(&kept[i]), now = atomic_load(&s->hash[i]);
        if (old && now && old != now && *differs == s->n)
            *differs = i;
        if (!old)
            atomic_store(&kept[i], now);
    }
    seen_fini(&(seen){.hash = s->hash, .map = s->map, .map_len = s->map_len});
    s->hash = kept;
    s->map = map;
    s->map_len = len;
    return CO_OK;
}

void seen_fini(seen *s)
{
    if (s->map)
        munmap(s->map, s->map_len);
    else
        co_free_shared((void *)s->hash);
    *s = (seen){0};
}
