/* names.c -- the three families of metric names, as people's dashboards know them.
 *
 *     record and lightning    train/loss_step   train/acc_epoch    val/acc    val/acc_best    lr
 *     slash                   Loss/train        acc1/train_epoch   acc1/val   acc1/val_best   lr
 *     underscore              train_loss        train_acc1_epoch   val_acc1   val_acc1_best   lr
 *
 * A metric's name is PART/METRIC[_step|_epoch|_best]. The slash family has the metric first, the underscore
 * family none of the slashes. Neither says `_step`: it is their usual value. Other names stay as they are.
 */
#include "track/tracker.h"

#include <stdio.h>
#include <string.h>

static const char *const parts[] = {"train", "val", "test"};
static const char *const tails[] = {"_step", "_epoch", "_best"}; /* the first is left out */

/* What the families call a metric; one that is not listed keeps its name. */
static const struct {
    const char *record, *slash, *underscore;
} metrics[] = {{"loss", "Loss", "loss"}, {"acc", "acc1", "acc1"}};

static const char *part_of(const char *name)
{
    for (size_t i = 0; i < CO_COUNT(parts); i++) {
        size_t n = strlen(parts[i]);
        if (strncmp(name, parts[i], n) == 0 && name[n] == '/' && name[n + 1])
            return parts[i];
    }
    return NULL;
}

static const char *tail_of(const char *metric)
{
    size_t len = strlen(metric);

    for (size_t i = 0; i < CO_COUNT(tails); i++) {
        size_t n = strlen(tails[i]);
        if (len > n && strcmp(metric + len - n, tails[i]) == 0)
            return tails[i];
    }
    return "";
}

static void metric_of(char out[CO_METRIC_NAME], co_names family, const char *metric, size_t len)
{
    snprintf(out, CO_METRIC_NAME, "%.*s", (int)len, metric);
    for (size_t i = 0; i < CO_COUNT(metrics); i++)
        if (strcmp(out, metrics[i].record) == 0) {
            snprintf(out, CO_METRIC_NAME, "%s",
                     family == CO_NAMES_SLASH ? metrics[i].slash : metrics[i].underscore);
            return;
        }
}

void co_scalar_name(char out[CO_METRIC_NAME], co_names family, const char *name)
{
    const char *part = part_of(name);
    char metric[CO_METRIC_NAME];

    snprintf(out, CO_METRIC_NAME, "%s", name);
    if (family == CO_NAMES_LIGHTNING || !part || strlen(name) + 2 >= CO_METRIC_NAME)
        return;
    const char *own = name + strlen(part) + 1, *tail = tail_of(own);
    metric_of(metric, family, own, strlen(own) - strlen(tail));
    if (strcmp(tail, tails[0]) == 0)
        tail = "";
    const char *first = family == CO_NAMES_SLASH ? metric : part;
    const char *second = family == CO_NAMES_SLASH ? part : metric;
    size_t n = strlen(first);
    memcpy(out, first, n);
    out[n++] = family == CO_NAMES_SLASH ? '/' : '_';
    snprintf(out + n, CO_METRIC_NAME - n, "%s%s", second, tail);
}
