/* meter.c -- the progress lines of PyTorch's ImageNet example, which many scripts read:
 *
 *     Epoch: [0][  11/1000]<tab>Time  0.123 ( 0.120)<tab>Data  0.001 ( 0.002)<tab>Loss 6.9e+00 (7.0e+00)<tab>Acc@1 ...
 *     Test: [ 6/ 6]<tab>Time  0.012 ( 0.012)<tab>Loss 1.2345e+00 (1.2345e+00)<tab>Acc@1  71.88 ( 71.88)<tab>Acc@5 ...
 *      * Acc@1 71.880 Acc@5 98.440
 *
 * A meter shows the last value and, in brackets, the mean of the epoch so far: over steps for times, over
 * samples for the rest. Accuracies are percents. */
#include "track/track.h"

#include <stdio.h>

static void see(co_meter *m, double value, double weight)
{
    m->last = value;
    m->sum += value * weight;
    m->weight += weight;
}

static void show(co_str *out, const char *name, const char *format, double scale, const co_meter *m)
{
    char text[64];
    double mean = m->weight > 0 ? m->sum / m->weight : 0;

    co_str_addf(out, "\t%s ", name);
    snprintf(text, sizeof text, format, scale * m->last);
    co_str_add(out, text);
    snprintf(text, sizeof text, format, scale * mean);
    co_str_addf(out, " (%s)", text);
}

void co_meters_see(co_meters *m, double step_s, double data_s, double loss, double top1, double top5,
                   int64_t samples)
{
    double n = (double)samples;

    see(&m->time, step_s, 1);
    see(&m->data, data_s, 1);
    see(&m->loss, loss, n);
    see(&m->top1, top1, n);
    see(&m->top5, top5, n);
}

static int digits(int64_t n)
{
    return snprintf(NULL, 0, "%lld", (long long)n);
}

static void show_common(co_str *out, const co_meters *m, bool test, int tops)
{
    show(out, "Time", "%6.3f", 1, &m->time);
    if (!test)
        show(out, "Data", "%6.3f", 1, &m->data);
    show(out, "Loss", "%.4e", 1, &m->loss);
    if (tops >= 1)
        show(out, "Acc@1", "%6.2f", 100, &m->top1);
    if (tops >= 2)
        show(out, "Acc@5", "%6.2f", 100, &m->top5);
}

void co_meters_train(const co_meters *m, int64_t epoch, int64_t batch, int64_t batches, int tops, co_str *out)
{
    co_str_addf(out, "Epoch: [%lld][%*lld/%lld]", (long long)epoch, digits(batches), (long long)batch,
                (long long)batches);
    show_common(out, m, false, tops);
}

void co_meters_test(const co_meters *m, int64_t batch, int64_t batches, int tops, co_str *out)
{
    co_str_addf(out, "Test: [%*lld/%lld]", digits(batches), (long long)batch, (long long)batches);
    show_common(out, m, true, tops);
}

void co_meters_summary(double top1, double top5, int tops, co_str *out)
{
    co_str_addf(out, " * Acc@1 %.3f", 100 * top1);
    if (tops >= 2)
        co_str_addf(out, " Acc@5 %.3f", 100 * top5);
}
