/* over_guest.c -- the hooks of a guest. They do nothing until it has a run folder; then each does what
 * record.c's does. */
#include <stdio.h>

#include "cli/over_int.h"

static co_err guest_adopt(void *ctx)
{
    training *s = ctx;

    CO_TRY(training_folder(s));
    s->over->hooks.publish_fd = co_folder_settle_fd(s->folder);
    record_track(s);
    if (s->over->keeper[0])
        tell(s, "run       this host writes from now on: %s", co_folder_path(s->folder));
    else
        record_first_screen(s);
    return CO_OK;
}

void guest_view(training *s, const co_deal *deal, const char *keeper)
{
    bool keeps = deal->me == RECORD_KEEPER;

    if (keeps && !s->folder && guest_adopt(s) != CO_OK)
        shout(s, "warning   this host is to write the record, and cannot: %s", co_errmsg());
    else if (!keeps && !s->over->keeper[0])
        tell(s, "guest     the record and the progress of this run are on %s", keeper);
}

static void guest_notice(void *ctx, const char *text)
{
    tell(ctx, "%s", text);
    if (!((training *)ctx)->folder)
        log_line(ctx, text);
}

/* All hosts hear it. */
static void guest_talk(void *ctx, const char *text)
{
    tell(ctx, "%s", text);
}

static void guest_step(void *ctx, const co_step_result *r)
{
    training *s = ctx;

    if (s->folder)
        s->over->record.step(ctx, r);
    s->last = *r;
    if (!s->folder)
        follow_quietly(s);
}
static void guest_eval(void *ctx, const co_eval_result *r)
{
    if (((training *)ctx)->folder)
        ((training *)ctx)->over->record.eval(ctx, r);
}
static void guest_gradients(void *ctx, int64_t step, const co_histogram *h)
{
    if (((training *)ctx)->folder)
        ((training *)ctx)->over->record.gradients(ctx, step, h);
}
static void guest_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    training *s = ctx;

    if (s->folder)
        s->over->record.saved(ctx, step, path, failure);
    else if (failure)
        shout(s, "checkpoint of step %lld NOT saved: %s", (long long)step, failure);
}
static void guest_recovery(void *ctx, const co_recovery *r)
{
    training *s = ctx;

    if (s->folder)
        s->over->record.recovery(ctx, r);
    char text[700];
    snprintf(text, sizeof text, "rank %d (pid %d) %s at step %lld: replaced, nothing lost", r->slot, r->pid,
             r->how, (long long)r->step);
    if (s->folder)
        return;
    tell(s, "%s", text);
    log_line(s, text);
}
static co_err guest_record(void *ctx)
{
    return ((training *)ctx)->folder ? ((training *)ctx)->over->record.record(ctx) : CO_OK;
}
static co_err guest_publish(void *ctx, int64_t view)
{
    return ((training *)ctx)->folder ? ((training *)ctx)->over->record.publish(ctx, view) : CO_OK;
}
static co_err guest_turn(void *ctx)
{
    if (((training *)ctx)->folder)
        return listening_turn(ctx);
    machine_look(ctx);
    over_send_use(ctx);
    return CO_OK;
}

co_train_hooks guest_hooks(training *s)
{
    return (co_train_hooks){.ctx = s,
                            .step = guest_step,
                            .eval = guest_eval,
                            .gradients = guest_gradients,
                            .saved = guest_saved,
                            .recovery = guest_recovery,
                            .notice = guest_notice,
                            .talk = guest_talk,
                            .record = guest_record,
                            .publish = guest_publish,
                            .publish_fd = -1,
                            .remember = s->over->record.remember,
                            .turn = guest_turn,
                            .ranks = machine_ranks,
                            .adopt = guest_adopt,
                            .comes_back = guest_comes_back};
}
