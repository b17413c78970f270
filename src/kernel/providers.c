/* providers.c -- the table of providers, best first: `auto` takes the first that this CPU has. A new level of
 * simd/ is a row here (docs/adding.md, "A level"). */
#include "kernel/kernel_int.h"

#include "base/err.h"

static bool any_cpu(void)
{
    return true;
}

static bool cpu_has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
}

static bool cpu_has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool cpu_has_fma(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx") && __builtin_cpu_supports("fma");
}

const provider providers[] = {
    {"avx512", "avx2", "AVX-512 (F, DQ, BW, VL)", cpu_has_avx512, kernels_fill_avx512},
    {"avx2", "avx2", "AVX2 or FMA", cpu_has_avx2, kernels_fill_avx2},
    {"fma128", "avx2", "AVX or FMA", cpu_has_fma, kernels_fill_fma128},
    {"ref", "ref", NULL, any_cpu, kernels_ref_fill},
    {"far", "far", NULL, any_cpu, kernels_far_fill},
};
const int provider_count = CO_COUNT(providers);
