/* test_meter.c -- the lines of PyTorch's ImageNet example, to the byte, and spikes of the loss. */
#include "track_test.h"

#include <math.h>

static void check_text(co_str *got, const char *want)
{
    CHECK(!strcmp(co_str_text(got), want), "[%s]\n[%s]", co_str_text(got), want);
    co_str_clear(got);
}

TEST(meter_lines_are_those_of_the_imagenet_example)
{
    co_meters m = {0};
    co_str s = {0};

    co_meters_see(&m, 0.5, 0.25, 7.0, 0, 0.01, 100);
    co_meters_see(&m, 0.1, 0.05, 5.0, 0.5, 1, 300);
    co_meters_train(&m, 3, 11, 5005, 2, &s);
    check_text(
        &s, "Epoch: [3][  11/5005]\tTime  0.100 ( 0.300)\tData  0.050 ( 0.150)\tLoss 5.0000e+00 (5.5000e+00)"
            "\tAcc@1  50.00 ( 37.50)\tAcc@5 100.00 ( 75.25)");
    co_meters_train(&m, 0, 1, 9, 0, &s);
    check_text(&s,
               "Epoch: [0][1/9]\tTime  0.100 ( 0.300)\tData  0.050 ( 0.150)\tLoss 5.0000e+00 (5.5000e+00)");
    co_meters_test(&m, 20, 196, 1, &s);
    check_text(&s,
               "Test: [ 20/196]\tTime  0.100 ( 0.300)\tLoss 5.0000e+00 (5.5000e+00)\tAcc@1  50.00 ( 37.50)");
    co_meters_summary(0.69758, 0.89078, 2, &s);
    check_text(&s, " * Acc@1 69.758 Acc@5 89.078");
    co_str_fini(&s);
}

/* Losses as they come: a falling curve with noise of the given share. */
static double curve(uint64_t *rng, int step, double noise)
{
    double level = 0.02 + 2.3 * exp(-step / 150.0);

    return level * (1 + noise * (double)test_unit(rng));
}

TEST(ordinary_noise_is_no_spike)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint64_t rng = seed;
        co_spikes s = {0};
        for (int step = 1; step <= 2000; step++) {
            double loss = curve(&rng, step, 0.5), tail = test_unit(&rng);
            if (step > 800 && tail > 0.98) /* late in training a batch now and then is ten times worse than most */
                loss *= 10;
            double above = co_spikes_see(&s, step, loss, 6);
            CHECK(above == 0, "seed %d: step %d, loss %g, %g deviations above %g", (int)seed, step, loss,
                  above, s.was_mean);
        }
    }
    co_spikes constant = {0};
    for (int step = 1; step <= 200; step++)
        CHECK(co_spikes_see(&constant, step, 1.5 + 1e-9 * (step % 3), 6) == 0, "step %d", step);
}

TEST(a_jump_of_the_loss_is_noticed_once)
{
    uint64_t rng = 7;
    co_spikes s = {0};
    int told[8], n = 0;
    double above = 0;

    for (int step = 1; step <= 600; step++) {
        double loss = curve(&rng, step, 0.1);
        if (step == 10 || (step >= 300 && step < 310)) /* too early to judge; then ten bad steps in a row */
            loss = 8.1;
        double a = co_spikes_see(&s, step, loss, 6);
        if (a > 0 && n < 8) {
            above = a;
            told[n++] = step;
        }
    }
    CHECK(n == 1 && told[0] == 300 && above > 6, "%d notices, the first at %d, %g deviations", n, told[0],
          above);
    CHECK(co_spikes_see(&s, 700, 1e6, 0) == 0, "told although not asked to");
    CHECK(co_spikes_see(&s, 701, NAN, 6) == 0 && isfinite(s.mean), "not a number is another's matter");
    CHECK(co_spikes_see(&s, 702, 8.1, 6) > 6, "the next one is not noticed");
}
