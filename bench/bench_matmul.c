/* bench_matmul.c -- matrix products and convolutions against the FMA peak of this core, one thread.
 *
 * The peak is a loop of independent FMAs that touches nothing but registers. Peak and kernel are measured in
 * turn, ROUNDS times, so that a busy machine or a changing clock hits both; each figure is the median over
 * the rounds, and so is the fraction. Time is the CPU time of this thread. An argument selects the tasks
 * whose names contain it. The output is one JSON object a line:
 *
 *     {"task":"matmul 512x512x512","peak_gflops":98.1,"ours_gflops":80.2,"fraction":0.817}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "bench/peak.h"
#include "kernel/kernel.h"

enum { ROUNDS = 7 };

typedef struct task {
    char name[64];
    co_op op;
    co_attr attr;
    co_shape in[3];
    int n_in;
    co_shape out;
    double flops;
} task;

typedef struct sizes {
    co_op op;
    int64_t m, k, n; /* matmul [m,k] x [k,n]; linear [m,k] -> n; matmul_tn_sum [k,m]^T x [k,n] */
} sizes;

static const sizes products[] = {
    {CO_OP_MATMUL, 256, 256, 256},
    {CO_OP_MATMUL, 512, 512, 512},
    {CO_OP_MATMUL, 1024, 1024, 1024},
    {CO_OP_MATMUL, 64, 128, 64},
    {CO_OP_MATMUL, 16, 128, 64},
    {CO_OP_LINEAR, 16, 512, 512},
    {CO_OP_LINEAR, 16, 64, 128},
    {CO_OP_LINEAR, 4, 64, 128},
    {CO_OP_LINEAR, 16, 128, 10},
    {CO_OP_MATMUL_TN_SUM, 128, 16, 64}, /* then those of a vision transformer's block: 4 pictures of 50 tokens */
    {CO_OP_LINEAR, 200, 768, 3072},
    {CO_OP_LINEAR, 200, 3072, 768},
    {CO_OP_MATMUL, 200, 768, 3072},
    {CO_OP_MATMUL, 200, 3072, 768},
    {CO_OP_MATMUL_TN_SUM, 768, 200, 3072},
};

/* 3x3, pad 1, 16 images of c x s x s to o channels: each forward, and both gradients. */
static const struct layer {
    int64_t c, s, o;
    int stride;
} layers[] = {
    {64, 16, 64, 1},  {16, 8, 32, 1},   {1, 8, 16, 1},    {128, 8, 128, 1},
    {64, 16, 128, 2}, {256, 4, 256, 1}, {512, 2, 512, 1},
};

static task product_task(const sizes *z)
{
    task t = {.op = z->op, .n_in = 2, .flops = 2.0 * (double)(z->m * z->k * z->n)};
    t.in[0] = z->op == CO_OP_MATMUL_TN_SUM ? CO_SHAPE(z->k, z->m) : CO_SHAPE(z->m, z->k);
    t.in[1] = z->op == CO_OP_LINEAR ? CO_SHAPE(z->n, z->k) : CO_SHAPE(z->k, z->n);
    if (z->op == CO_OP_LINEAR)
        t.in[t.n_in++] = CO_SHAPE(z->n);
    t.out = CO_SHAPE(z->m, z->n);
    snprintf(t.name, sizeof t.name, "%s %dx%dx%d", co_op_name(z->op), (int)z->m, (int)z->k, (int)z->n);
    return t;
}

static task conv_task(const struct layer *l, co_op op)
{
    int64_t out = l->s / l->stride;
    co_shape x = CO_SHAPE(16, l->c, l->s, l->s), w = CO_SHAPE(l->o, l->c, 3, 3),
             y = CO_SHAPE(16, l->o, out, out);
    task t = {.op = op, .n_in = 2, .attr = {.stride = l->stride, .pad = 1}};
    t.in[0] = op == CO_OP_CONV2D ? x : y;
    t.in[1] = op == CO_OP_CONV2D_DW ? x : w;
    t.out = op == CO_OP_CONV2D ? y : op == CO_OP_CONV2D_DX ? x : w;
    t.flops = 2.0 * 9 * (double)(l->c * co_shape_count(&y));
    snprintf(t.name, sizeof t.name, "%s 16x%dx%dx%d to %d by 3x3/%d", co_op_name(op), (int)l->c, (int)l->s,
             (int)l->s, (int)l->o, l->stride);
    return t;
}

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

/* The CPU time of this thread: other load on the machine does not count. */
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
    co_kernel_run(row, &c, NULL, 1);
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t t0 = cpu_ns();
        double flops = co_peak_fma_loop(2000000);
        uint64_t t1 = cpu_ns();
        for (int64_t i = 0; i < reps; i++)
            co_kernel_run(row, &c, NULL, 1);
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

static const co_kernels *kernels;
static const char *word; /* only tasks whose name contains it */

static void offer(task t)
{
    if (!word || strstr(t.name, word))
        measure(kernels, &t);
}

int main(int argc, char **argv)
{
    if (co_kernels_get(&kernels, "avx2")) {
        fprintf(stderr, "bench_matmul: %s\n", co_errmsg());
        return 1;
    }
    word = argc > 1 ? argv[1] : NULL;
    for (size_t i = 0; i < CO_COUNT(products); i++)
        offer(product_task(&products[i]));
    for (size_t i = 0; i < CO_COUNT(layers); i++)
        for (co_op op = CO_OP_CONV2D; op <= CO_OP_CONV2D_DW; op++)
            offer(conv_task(&layers[i], op));
    return 0;
}
