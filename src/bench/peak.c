/* peak.c -- measures the FMA rate and the memory bandwidth of one thread, as the two limits of a kernel. */
#include "bench/peak.h"

#include <immintrin.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { CHAINS = 12, ROUNDS = 7, LOOPS = 1000000 };
static const size_t copied = 64u << 20; /* bytes: larger than the last cache's share of a core */

__attribute__((target("avx2,fma"), noinline)) static double fma_loop(int64_t loops)
{
    __m256 s[CHAINS], a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
    for (int i = 0; i < CHAINS; i++)
        s[i] = _mm256_set1_ps((float)i);
    for (int64_t k = 0; k < loops; k++) {
        s[0] = _mm256_fmadd_ps(s[0], a, b), s[1] = _mm256_fmadd_ps(s[1], a, b);
        s[2] = _mm256_fmadd_ps(s[2], a, b), s[3] = _mm256_fmadd_ps(s[3], a, b);
        s[4] = _mm256_fmadd_ps(s[4], a, b), s[5] = _mm256_fmadd_ps(s[5], a, b);
        s[6] = _mm256_fmadd_ps(s[6], a, b), s[7] = _mm256_fmadd_ps(s[7], a, b);
        s[8] = _mm256_fmadd_ps(s[8], a, b), s[9] = _mm256_fmadd_ps(s[9], a, b);
        s[10] = _mm256_fmadd_ps(s[10], a, b), s[11] = _mm256_fmadd_ps(s[11], a, b);
    }
    float out[8];
    volatile float sink = 0;
    for (int i = 0; i < CHAINS; i++) {
        _mm256_storeu_ps(out, s[i]);
        sink = sink + out[0];
    }
    return (double)loops * CHAINS * 8 * 2;
}

double co_peak_fma_loop(int64_t loops)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 0;
    return fma_loop(loops);
}

static double best(double so_far, double amount, uint64_t began_ns)
{
    double rate = amount / ((double)(co_now_ns() - began_ns) * 1e-9);

    return rate > so_far ? rate : so_far;
}

co_err co_peak_measure(co_peak *out)
{
    char *from = co_alloc(copied), *to = co_alloc(copied);
    co_err err = from && to ? CO_OK : CO_ENOMEM;
    co_peak peak = {0};

    if (!err) {
        memset(from, 1, copied);
        memset(to, 2, copied);
    }
    for (int i = 0; i < ROUNDS && !err; i++) {
        uint64_t began = co_now_ns();
        double flops = co_peak_fma_loop(LOOPS);
        peak.flops_per_s = best(peak.flops_per_s, flops, began);
        began = co_now_ns();
        memcpy(to, from, copied);
        __asm__ volatile("" : : "r"(to) : "memory"); /* somebody reads it */
        peak.bytes_per_s = best(peak.bytes_per_s, 2.0 * (double)copied, began);
    }
    co_free(from);
    co_free(to);
    if (!err)
        *out = peak;
    return err;
}
