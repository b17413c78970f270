/* arena.c -- reserves regions, refuses what does not fit into memory, maps the rest.
 *
 * Where Linux gives pages of 2 MiB, the arena takes them, for all whole 2 MiB that are populated. A pass over the state
 * misses the TLB less often, and populating is faster. Which pages there are changes nothing else, so a refusal is no
 * error (docs/decisions/0027-large-pages.md).
 */
#include "comm/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cgroup.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };

size_t co_arena_reserve(co_arena *a, const char *name, size_t bytes)
{
    CO_ASSERT(a->n < CO_ARENA_REGIONS, "too many regions");
    co_region *r = &a->region[a->n++];

    snprintf(r->name, sizeof r->name, "%s", name);
    r->offset = a->bytes;
    r->bytes = bytes;
    if (bytes > SIZE_MAX / 4 || a->bytes > SIZE_MAX / 4)
        a->bytes = SIZE_MAX / 4; /* an overflow: co_arena_open refuses this size */
    else
        a->bytes += (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    return r->offset;
}

size_t co_arena_reserve_late(co_arena *a, const char *name, size_t bytes)
{
    size_t offset = co_arena_reserve(a, name, bytes);

    a->region[a->n - 1].late = true;
    return offset;
}

size_t co_arena_sum(const co_arena *a, const char *prefix)
{
    size_t sum = 0;

    for (int i = 0; i < a->n; i++)
        if (strncmp(a->region[i].name, prefix, strlen(prefix)) == 0)
            sum += a->region[i].bytes;
    return sum;
}

static uint64_t mem_available(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    uint64_t kib = UINT64_MAX / 1024;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

size_t co_memory_available(void)
{
    uint64_t least = mem_available();
    co_cgroup group;

    co_cgroup_read(&group, "");
    return (size_t)(group.memory_left < least ? group.memory_left : least);
}

co_err co_arena_fits(const co_arena *a)
{
    size_t room = co_memory_available();

    if (a->bytes <= room)
        return CO_OK;
    return co_fail(
        CO_ENOMEM,
        "the plan needs %.1f MiB of memory but only %.1f MiB are free: use a smaller data.batch_size, fewer "
        "trainer.devices, trainer.slices_at_once=false or a smaller model",
        (double)a->bytes / 1048576, (double)room / 1048576);
}

/* Addresses for the arena that large pages can be mapped to. MAP_FAILED: there are none. */
static char *take_addresses(size_t bytes)
{
    size_t more = bytes + LARGE_PAGE;
    char *all = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (all == MAP_FAILED)
        return all;
    size_t before = -(uintptr_t)all & (LARGE_PAGE - 1),
           used = before + ((bytes + PAGE - 1) & ~(size_t)(PAGE - 1));
    if (before)
        munmap(all, before);
    munmap(all + used, more - used);
    return all + before;
}

/* A large page takes the place of small ones. One small page must be there; more would be cleared and copied for
 * nothing. */
static void take_large_pages(char *lo, char *hi)
{
    char *first = lo + (-(uintptr_t)lo & (LARGE_PAGE - 1)), *end = hi - ((uintptr_t)hi & (LARGE_PAGE - 1));

    for (volatile char *at = first; at < end; at += LARGE_PAGE)
        *at = 0;
    if (first < end)
        (void)!madvise(first, (size_t)(end - first), MADV_COLLAPSE); /* else they stay small */
}

/* Regions that are not late get their memory now. Neighbours are populated together. */
static void populate_regions(const co_arena *arena)
{
    for (int i = 0, to; i < arena->n; i = to) {
        const co_region *first = &arena->region[i];
        for (to = i + 1; to < arena->n && arena->region[to].late == first->late;)
            to++;
        size_t end = to < arena->n ? arena->region[to].offset : arena->bytes;
        if (first->late)
            continue;
        take_large_pages(arena->base + first->offset, arena->base + end);
        co_populate(arena->base + first->offset, end - first->offset);
    }
}

co_err co_arena_open(co_arena *arena)
{
    CO_TRY(co_arena_fits(arena));
    int fd = memfd_create("cohort", MFD_CLOEXEC);
    if (fd < 0)
        return co_fail(CO_EIO, "memfd_create: %m");
    char *room = ftruncate(fd, (off_t)arena->bytes) == 0 ? take_addresses(arena->bytes) : MAP_FAILED,
         *base = room;
    if (room != MAP_FAILED)
        base = mmap(room, arena->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (base == MAP_FAILED) {
        co_err err = co_fail(CO_ENOMEM, "map %zu bytes of shared memory: %m", arena->bytes);
        if (room != MAP_FAILED)
            munmap(room, arena->bytes);
        close(fd);
        return err;
    }
    arena->fd = fd;
    arena->base = base;
    populate_regions(arena);
    return CO_OK;
}

size_t co_arena_used(const co_arena *a)
{
    struct stat st;

    return fstat(a->fd, &st) == 0 ? (size_t)st.st_blocks * 512 : a->bytes;
}

void co_arena_close(co_arena *a)
{
    if (!a->base)
        return;
    munmap(a->base, a->bytes);
    close(a->fd);
    a->base = NULL;
}

void co_populate(void *p, size_t len)
{
    uintptr_t lo = (uintptr_t)p & ~(uintptr_t)(PAGE - 1),
              hi = ((uintptr_t)p + len + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

    if (len == 0 || madvise((void *)lo, hi - lo, MADV_POPULATE_WRITE) == 0)
        return;
    /* kernels before 5.14 lack MADV_POPULATE_WRITE */
    for (uintptr_t at = (uintptr_t)p; at < (uintptr_t)p + len; at += PAGE)
        __atomic_fetch_add((unsigned char *)at, 0, __ATOMIC_RELAXED);
}

static int populate_object(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t lo = (info->dlpi_addr + h->p_vaddr) & ~(uintptr_t)(PAGE - 1);
        uintptr_t hi = (info->dlpi_addr + h->p_vaddr + h->p_memsz + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) &&
            madvise((void *)lo, hi - lo, MADV_POPULATE_READ) != 0)
            return 1; /* kernels before 5.14 lack MADV_POPULATE_READ: code pages load when first run */
    }
    return 0;
}

void co_populate_code(void)
{
    dl_iterate_phdr(populate_object, NULL);
}
