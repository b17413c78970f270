/* bench_matmul.c -- matrix products and convolutions against the FMA peak of this core, one thread.
 *
 * The peak is a loop of independent FMAs that touches nothing but registers. Peak and kernel are measured in
 * turn, ROUNDS times, so that a busy machine or a changing clock hits both; each figure is the median over the rounds, and
 * so is the fraction. Time is that of this thread on a CPU. One JSON object a line:
 *
 *     {"task":"matmul 512x512x512","peak_gflops":98.1,"ours_gflops":80.2,"fraction":0.817}
 */
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "kernel/kernel.h"

enum { ROUNDS = 7 };

#define CHAINS 12

__attribute__((target("avx2,fma"), noinline)) static double peak_flops(int64_t loops)
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

typedef struct task {
    const char *name;
    co_op op;
    co_attr attr;
    co_shape in[3];
    int n_in;
    co_shape out;
    double flops;
} task;

#define MATMUL(m, k, n)                                                                                      \
    {                                                                                                        \
        .name = "matmul " #m "x" #k "x" #n, .op = CO_OP_MATMUL, .in = {{2, {m, k}}, {2, {k, n}}}, .n_in = 2, \
        .out = {2, {m, n}}, .flops = 2.0 * (m) * (k) * (n)                                                   \
    }
#define LINEAR(r, i, o)                                                                                      \
    {                                                                                                        \
        .name = "linear " #r "x" #i "->" #o, .op = CO_OP_LINEAR,                                             \
        .in = {{2, {r, i}}, {2, {o, i}}, {1, {o}}}, .n_in = 3, .out = {2, {r, o}}, .flops = 2.0 * (r) * (i) * (o) \
    }
#define TN_SUM(r, m, n)                                                                                      \
    {                                                                                                        \
        .name = "matmul_tn_sum " #r "x" #m "x" #n, .op = CO_OP_MATMUL_TN_SUM, .in = {{2, {r, m}}, {2, {r, n}}}, \
        .n_in = 2, .out = {2, {m, n}}, .flops = 2.0 * (r) * (m) * (n)                                        \
    }
/* 3x3, pad 1: n images of c x s x s to o channels, stride t */
#define CONV_FLOPS(n, c, s, o, t) (2.0 * (n) * (c) * (o) * 9 * ((s) / (t)) * ((s) / (t)))
#define CONV_X(n, c, s)    {4, {n, c, s, s}}
#define CONV_W(c, o)       {4, {o, c, 3, 3}}
#define CONV(n, c, s, o, t)                                                                                  \
    {.name = "conv2d n" #n " " #c "x" #s "x" #s "->" #o " /" #t,                                             \
     .op = CO_OP_CONV2D,                                                                                     \
     .attr = {.stride = t, .pad = 1},                                                                        \
     .in = {CONV_X(n, c, s), CONV_W(c, o)},                                                                  \
     .n_in = 2,                                                                                              \
     .out = CONV_X(n, o, (s) / (t)),                                                                         \
     .flops = CONV_FLOPS(n, c, s, o, t)},                                                                    \
        {.name = "conv2d_dx n" #n " " #c "x" #s "x" #s "->" #o " /" #t,                                      \
         .op = CO_OP_CONV2D_DX,                                                                              \
         .attr = {.stride = t, .pad = 1},                                                                    \
         .in = {CONV_X(n, o, (s) / (t)), CONV_W(c, o)},                                                      \
         .n_in = 2,                                                                                          \
         .out = CONV_X(n, c, s),                                                                             \
         .flops = CONV_FLOPS(n, c, s, o, t)},                                                                \
    {                                                                                                        \
        .name = "conv2d_dw n" #n " " #c "x" #s "x" #s "->" #o " /" #t, .op = CO_OP_CONV2D_DW,                \
        .attr = {.stride = t, .pad = 1}, .in = {CONV_X(n, o, (s) / (t)), CONV_X(n, c, s)}, .n_in = 2,        \
        .out = CONV_W(c, o), .flops = CONV_FLOPS(n, c, s, o, t)                                              \
    }

static const task tasks[] = {
    MATMUL(256, 256, 256),
    MATMUL(512, 512, 512),
    MATMUL(1024, 1024, 1024),
    MATMUL(64, 128, 64),
    MATMUL(16, 128, 64),
    LINEAR(16, 512, 512),
    LINEAR(16, 64, 128),
    LINEAR(4, 64, 128),
    LINEAR(16, 128, 10),
    TN_SUM(16, 128, 64),
    CONV(16, 64, 16, 64, 1),
    CONV(16, 16, 8, 32, 1),
    CONV(16, 1, 8, 16, 1),
    CONV(16, 128, 8, 128, 1),
    CONV(16, 64, 16, 128, 2),
    CONV(16, 256, 4, 256, 1),
    CONV(16, 512, 2, 512, 1),
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 2];
}

static float *tensor(const co_shape *s)
{
    int64_t n = co_shape_count(s);
    float *p = co_array((size_t)n + 16, sizeof *p);
    if (!p)
        exit(1);
    uint32_t r = 1;
    for (int64_t i = 0; i < n; i++) {
        r = r * 1664525u + 1013904223u;
        p[i] = (float)(r >> 8) * 0x1p-24f - 0.5f;
    }
    return p;
}

/* This thread's time on a CPU: what others do on the machine does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double gflops(double flops, uint64_t ns)
{
    return flops / (double)(ns ? ns : 1);
}

static void measure(const co_kernels *k, const task *t)
{
    co_run run = {0};
    co_arg in[3], out = {.dtype = CO_F32, .shape = t->out, .p = tensor(&t->out)};
    for (int i = 0; i < t->n_in; i++)
        in[i] = (co_arg){.dtype = CO_F32, .shape = t->in[i], .p = tensor(&t->in[i])};
    co_call c = {.attr = &t->attr, .in = in, .out = &out, .n_in = t->n_in, .n_out = 1, .run = &run, .nth = 1};
    const co_kernel_row *row = &k->row[t->op];
    size_t scratch = row->scratch ? row->scratch(&c) : 0;
    char *mem = co_alloc(scratch + 64);
    if (!mem)
        exit(1);
    c.scratch = mem + (64 - (uintptr_t)mem % 64) % 64;

    double peak[ROUNDS], ours[ROUNDS], part[ROUNDS];
    int64_t reps = (int64_t)(4e8 / t->flops) + 1; /* a few milliseconds each */
    row->fn(&c);
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t t0 = cpu_ns();
        double flops = peak_flops(2000000);
        uint64_t t1 = cpu_ns();
        for (int64_t i = 0; i < reps; i++)
            row->fn(&c);
        uint64_t t2 = cpu_ns();
        peak[r] = gflops(flops, t1 - t0);
        ours[r] = gflops(t->flops * (double)reps, t2 - t1);
        part[r] = ours[r] / peak[r];
    }
    printf("{\"task\":\"%s\",\"peak_gflops\":%.1f,\"ours_gflops\":%.1f,\"fraction\":%.3f}\n", t->name,
           median(peak, ROUNDS), median(ours, ROUNDS), median(part, ROUNDS));
    fflush(stdout);
    for (int i = 0; i < t->n_in; i++)
        co_free(in[i].p);
    co_free(out.p);
    co_free(mem);
}

/* With a word: only the tasks whose name contains it. */
int main(int argc, char **argv)
{
    const co_kernels *k;
    if (co_kernels_get(&k, "auto")) {
        fprintf(stderr, "bench_matmul: %s\n", co_errmsg());
        return 1;
    }
    for (size_t i = 0; i < CO_COUNT(tasks); i++)
        if (argc < 2 || strstr(tasks[i].name, argv[1]))
            measure(k, &tasks[i]);
    return 0;
}
