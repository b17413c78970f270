/* far.c -- the provider that finds misuse of device memory: reference kernels over memory that no other code
 * can read.
 *
 *     open           PROT_NONE
 *     enter, leave   readable and writable in between: one kernel call
 *     put, get       readable (and writable) for the length of one copy
 *
 * Code that reaches into device memory with a host pointer works on the other providers and dies here with
 * SIGSEGV. A kernel call costs two mprotect calls, so this provider is for tests only.
 */
#include "kernel/kernel_int.h"

#include <string.h>
#include <sys/mman.h>

static void protect(void *mem, size_t size, int how)
{
    CO_ASSERT(mprotect(mem, size, how) == 0, "far memory is a mapping of far_open");
}

static co_err far_open(void **mem, size_t size)
{
    void *p = mmap(NULL, size ? size : 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return co_fail(CO_ENOMEM, "far memory: mmap of %zu bytes: %m", size);
    *mem = p;
    return CO_OK;
}

static void far_close(void *mem, size_t size)
{
    CO_ASSERT(munmap(mem, size ? size : 1) == 0, "far memory is a mapping of far_open");
}

static void far_enter(void *mem, size_t size)
{
    protect(mem, size, PROT_READ | PROT_WRITE);
}

static void far_leave(void *mem, size_t size)
{
    protect(mem, size, PROT_NONE);
}

static void far_put(void *mem, size_t size, void *dst, const void *src, size_t len)
{
    far_enter(mem, size);
    memcpy(dst, src, len);
    far_leave(mem, size);
}

static void far_get(void *mem, size_t size, void *dst, const void *src, size_t len)
{
    protect(mem, size, PROT_READ);
    memcpy(dst, src, len);
    far_leave(mem, size);
}

void kernels_far_fill(co_kernels *k)
{
    static const co_space_ops ops = {far_open, far_close, far_put, far_get, far_enter, far_leave};

    kernels_ref_fill(k);
    k->space = &ops;
}
