/* test_names.c -- the families of metric names. */
#include "harness.h"

#include <string.h>

#include "track/tracker.h"

TEST(every_metric_has_its_name_in_each_family_and_other_names_stay)
{
    static const struct {
        const char *record, *slash, *underscore;
    } rows[] = {{"train/loss_step", "Loss/train", "train_loss"},
                {"train/acc_step", "acc1/train", "train_acc1"},
                {"train/acc5_step", "acc5/train", "train_acc5"},
                {"train/loss_epoch", "Loss/train_epoch", "train_loss_epoch"},
                {"val/loss", "Loss/val", "val_loss"},
                {"val/acc", "acc1/val", "val_acc1"},
                {"val/acc5", "acc5/val", "val_acc5"},
                {"val/acc_best", "acc1/val_best", "val_acc1_best"},
                {"test/mae", "mae/test", "test_mae"},
                {"lr", "lr", "lr"},
                {"grad_norm", "grad_norm", "grad_norm"},
                {"system/cpu_percent", "system/cpu_percent", "system/cpu_percent"},
                {"train/", "train/", "train/"},
                {"train/_step", "_step/train", "train__step"},
                {"trainer/x", "trainer/x", "trainer/x"}};
    char got[CO_METRIC_NAME], longest[400];
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        co_scalar_name(got, CO_NAMES_LIGHTNING, rows[i].record);
        CHECK(!strcmp(got, rows[i].record), "%s", got);
        co_scalar_name(got, CO_NAMES_SLASH, rows[i].record);
        CHECK(!strcmp(got, rows[i].slash), "%s", got);
        co_scalar_name(got, CO_NAMES_UNDERSCORE, rows[i].record);
        CHECK(!strcmp(got, rows[i].underscore), "%s", got);
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "val/", 4);
    for (size_t n = 240; n < sizeof longest; n++) {
        longest[n] = 0;
        co_scalar_name(got, CO_NAMES_SLASH, longest);
        CHECK(strlen(got) < CO_METRIC_NAME, "%s", got);
        longest[n] = 'x';
    }
}
