/* screen.c -- the first screen: what was decided, in words, before anything runs. */
#include "train/train_int.h"

#include <stdio.h>

static const char *mib(char buf[32], size_t bytes)
{
    snprintf(buf, 32, "%.1f MiB", (double)bytes / 1048576);
    return buf;
}

void plan_lines(co_plan *p)
{
    co_plan_facts *f = &p->facts;
    char a[32], b[32], c[32], shape[64];
    const co_io *io = &p->data->io;
    int idle = f->ranks_asked - p->ranks;

    snprintf(f->lines, sizeof f->lines,
             "model    %s, %zu parameters, kernels %s\n"
             "data     %s: %u train, %u val, %u test; sample %s, fingerprint %.12s\n"
             "batch    global batch %u = %d slices x %u samples (the most ranks that can work: %d)\n"
             "steps    %lld per epoch, %lld in all%s%lld\n"
             "ranks    %d on this host%s\n"
             "memory   %s shared (weights and moments %s, leaves and work %s)\n",
             p->spec.model->name, f->params, f->kernels, p->spec.data->name, p->data->count[CO_SPLIT_TRAIN],
             p->data->count[CO_SPLIT_VAL], p->data->count[CO_SPLIT_TEST],
             io->task == CO_TASK_LM ? "text" : co_shape_text(shape, sizeof shape, &io->x),
             p->data->fingerprint, p->batch, p->slices, p->batch / (uint32_t)p->slices, p->slices,
             (long long)p->sched.steps_per_epoch, (long long)p->sched.steps,
             p->start.step ? "; continuing after step " : "; from step ", (long long)p->start.step, p->ranks,
             idle > 0 ? " (more were asked for: they would be idle spares and are not started)" : "",
             mib(a, p->arena.bytes),
             mib(b, co_arena_sum(&p->arena, "weights") + co_arena_sum(&p->arena, "moments")),
             mib(c, co_arena_sum(&p->arena, "leaves") + co_arena_sum(&p->arena, "work")));
}
