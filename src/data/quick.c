/* quick.c -- what can be checked of a set without reading a sample: how its labels are spread.
 *
 * co_dataset_open does this for every set that knows its labels, so every training does. A val of one class
 * is refused, because its accuracy means nothing: it is what a flat val/ looks like to a reader of class
 * folders.
 */
#include "data/check_int.h"

#include "base/log.h"

enum { FEW = 20, PER_CLASS = 10 };

int64_t one_class(const uint32_t *train, const uint32_t *val, int64_t classes)
{
    uint64_t n_train = 0, n_val = 0;
    int64_t top = 0;

    for (int64_t c = 0; c < classes; c++) {
        n_train += train[c];
        n_val += val[c];
        top = val[c] > val[top] ? c : top;
    }
    bool is_one = classes > 1 && n_val >= FEW && (uint64_t)val[top] * 10 > n_val * 9;
    return is_one && (uint64_t)train[top] * 10 <= n_train * 7 ? top : -1;
}

static co_err judge(const co_dataset *d, const uint32_t *train, const uint32_t *val)
{
    const char *place = d->place, *colon = *place ? ": " : "";
    int64_t top = one_class(train, val, d->io.classes), missing = 0, first = -1;
    const char *name = NULL;

    if (top >= 0) {
        name = d->class_name ? d->class_name(d, top) : NULL;
        return co_fail(CO_EINPUT,
                       "%s%s%u of the %u samples of val are of one class, %lld%s%s%s: accuracy would mean "
                       "nothing. Is val in class folders? `cohort data check %s` says more",
                       place, colon, val[top], d->count[CO_SPLIT_VAL], (long long)top, name ? " (" : "",
                       name ? name : "", name ? ")" : "", *place ? place : "FOLDER");
    }
    for (int64_t c = 0; c < d->io.classes; c++)
        if (train[c] && !val[c] && missing++ == 0)
            first = c;
    if (missing && d->count[CO_SPLIT_VAL] >= PER_CLASS * d->io.classes) {
        name = d->class_name ? d->class_name(d, first) : NULL;
        co_log_say(CO_LOG_WARN,
                   "data: %s%sval has no sample of %lld of the %lld classes, the first is %lld%s%s%s", place,
                   colon, (long long)missing, (long long)d->io.classes, (long long)first, name ? " (" : "",
                   name ? name : "", name ? ")" : "");
    }
    return CO_OK;
}

co_err quick_check(const co_dataset *d)
{
    if (!d->count_classes || d->io.task != CO_TASK_CLASSIFY)
        return CO_OK;
    uint32_t *train = co_array((size_t)d->io.classes * 2, sizeof *train);
    if (!train)
        return CO_ENOMEM;
    d->count_classes(d, CO_SPLIT_TRAIN, train);
    d->count_classes(d, CO_SPLIT_VAL, train + d->io.classes);
    co_err err = judge(d, train, train + d->io.classes);
    co_free(train);
    return err;
}
