/* name.c -- what a checkpoint is called.
 *
 * The user may give a template as in Lightning: "epoch_{epoch:03d}", "{step}-{val/acc:.2f}". A field is
 * epoch, step, or the monitored value; after a colon comes its width or precision. Characters that do not
 * belong in a file name become '_'. A template without {epoch} or {step} is refused: two states with the same
 * name would replace each other.
 */
#include "train/save_int.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t epoch_of(const co_plan *plan, int64_t step)
{
    int64_t per = plan->units.steps_per_epoch;

    return step > 0 ? (step - 1) / per : 0; /* the epoch that this step belongs to */
}

static void plain(const co_plan *plan, int64_t step, char name[SAVE_NAME])
{
    if (step > 0 && step % plan->units.steps_per_epoch == 0)
        snprintf(name, SAVE_NAME, "epoch_%03lld", (long long)epoch_of(plan, step));
    else
        snprintf(name, SAVE_NAME, "step_%08lld", (long long)step);
}

/* "03d", ".2f" or nothing: the number in it, or -1. */
static int number_in(const char *spec, size_t len)
{
    int n = 0, digits = 0;

    for (size_t i = 0; i < len; i++)
        if (isdigit((unsigned char)spec[i]) && digits++ < 3)
            n = 10 * n + spec[i] - '0';
    return digits ? (n < 20 ? n : 20) : -1;
}

/* Longest text of one field. */
enum { FIELD = 64 };

/* The value of the field whose `len` characters stand between the braces. False: there is no such field. */
static bool field(const co_plan *plan, const char *text, size_t len, int64_t step, const watch *now,
                  char out[FIELD])
{
    const char *colon = memchr(text, ':', len);
    size_t n = colon ? (size_t)(colon - text) : len;
    int width = colon ? number_in(colon + 1, len - n - 1) : -1;
    const char *value = monitor_name(plan, plan->monitors.best);

    if (n == 5 && strncmp(text, "epoch", n) == 0)
        snprintf(out, FIELD, "%0*lld", width > 0 ? width : 1, (long long)epoch_of(plan, step));
    else if (n == 4 && strncmp(text, "step", n) == 0)
        snprintf(out, FIELD, "%0*lld", width > 0 ? width : 1, (long long)step);
    else if (n == strlen(value) && strncmp(text, value, n) == 0)
        snprintf(out, FIELD, "%.*f", width >= 0 ? width : 4, now->value_step == step ? now->value : NAN);
    else
        return false;
    return true;
}

/* False: the template has an unknown field, or the name is too long. */
static bool expand(const co_plan *plan, int64_t step, const watch *now, char name[SAVE_NAME])
{
    bool within_epoch = step % plan->units.steps_per_epoch != 0 && evaluates_after(&plan->units, step);
    size_t n = 0;

    for (const char *at = plan->cfg.ckpt_filename; *at;) {
        if (n + FIELD >= SAVE_NAME)
            return false;
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        char text[FIELD];
        if (end) {
            if (!field(plan, at + 1, (size_t)(end - at) - 1, step, now, text))
                return false;
            n += (size_t)snprintf(name + n, SAVE_NAME - n, "%s", text);
            at = end + 1;
        } else {
            name[n++] = isalnum((unsigned char)*at) || strchr("._+-=@", *at) ? *at : '_';
            at++;
        }
    }
    if (within_epoch && !strstr(plan->cfg.ckpt_filename, "{step")) /* an epoch may have several of them */
        n += (size_t)snprintf(name + n, SAVE_NAME - n, "_step_%08lld", (long long)step);
    name[n] = '\0';
    return true;
}

void save_name(const co_plan *plan, int64_t step, const watch *now, char name[SAVE_NAME])
{
    if (!plan->cfg.ckpt_filename || !expand(plan, step, now, name))
        plain(plan, step, name);
}

co_err check_save_name(co_plan *plan)
{
    const char *text = plan->cfg.ckpt_filename;
    int64_t step = plan->units.steps; /* as many digits as it will have */
    watch w = {.value = -1e6, .value_step = step};
    char name[SAVE_NAME];

    if (!text)
        return CO_OK;
    if (!expand(plan, step, &w, name))
        return co_fail(
            CO_EINPUT,
            "callbacks.model_checkpoint.filename: \"%s\": a field is {epoch}, {step} or {%s}, with a "
            "width or precision after a colon ({epoch:03d}), and a name has at most %d characters",
            text, monitor_name(plan, plan->monitors.best), SAVE_NAME - FIELD - 1);
    if (!strstr(text, "{epoch") && !strstr(text, "{step"))
        return co_fail(
            CO_EINPUT,
            "callbacks.model_checkpoint.filename: \"%s\" gives every checkpoint one name: put {epoch:03d} or "
            "{step} into it",
            text);
    if (plan->cfg.ckpt_every_steps && !strstr(text, "{step"))
        return co_fail(
            CO_EINPUT,
            "callbacks.model_checkpoint.filename: \"%s\" gives all checkpoints of an epoch one name, and "
            "every_n_steps makes several: put {step} into it",
            text);
    if (!isalnum((unsigned char)name[0]))
        return co_fail(CO_EINPUT,
                       "callbacks.model_checkpoint.filename: \"%s\" must begin with a letter or digit", text);
    return CO_OK;
}
