/* test_memory.c -- compares the memory that the plan predicts with the memory that the run used. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static double field(const char *key)
{
    json_t *j = json_load_file("t/summary.json", 0, NULL);

    CHECK(j != NULL, "no summary");
    double x = json_number_value(json_object_get(j, key));
    json_decref(j);
    return x;
}

TEST(planned_memory_is_the_measured_peak_within_5_percent)
{
    static const char *const runs[] = {
        "data=digits model=cnn trainer.devices=2 trainer.max_epochs=2",
        "data=digits model=mlp model.hidden=1000 optim=adam trainer.devices=2 trainer.max_steps=20",
        "data=digits model=mlp trainer.devices=4 data.workers=2 trainer.max_epochs=1",
        "data=text data.path=$REPO/tests/data/verse.txt model=lm trainer.devices=3 trainer.max_epochs=2",
    };

    for (size_t i = 0; i < CO_COUNT(runs); i++) {
        test_run r = test_sh("rm -rf t; $COHORT train %s run.dir=t console=quiet", runs[i]);
        CHECK(r.status == 0, "%s: %s", runs[i], r.out);
        double planned = field("planned_memory_bytes"), peak = field("peak_memory_bytes");
        test_note("planned %.2f MiB, measured %.2f MiB: %s", planned / 1048576, peak / 1048576, runs[i]);
#ifndef __SANITIZE_ADDRESS__ /* which adds memory of its own */
        CHECK(planned > 0.95 * peak && planned < 1.05 * peak, "%s: planned %g, peak %g", runs[i], planned,
              peak);
#endif
        free(r.out);
    }
}
