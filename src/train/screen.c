/* screen.c -- the first screen of a run: what the plan decided, one line for each fact. */
#include "train/carrier_int.h"
#include "train/plan_int.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Adds to the lines; what does not fit is cut. */
static void add(co_plan_facts *facts, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(co_plan_facts *facts, const char *fmt, ...)
{
    size_t at = strlen(facts->lines);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(facts->lines + at, sizeof facts->lines - at, fmt, ap);
    va_end(ap);
}

static double mib(size_t bytes)
{
    return (double)bytes / 1048576;
}

static void add_model(co_plan *plan)
{
    co_plan_facts *facts = &plan->facts;
    const co_model_def *model = plan->spec.model;
    char note[160] = "";
    size_t frozen = 0;

    for (int i = 0; plan->recipe.rule && i < plan->layout->n; i++)
        if (plan->layout->entry[i].kind == CO_KIND_PARAM && plan->recipe.rule[i].frozen)
            frozen += plan->layout->entry[i].count;
    add(facts, "model     %s: %zu parameters", model->name, facts->params);
    if (frozen)
        add(facts, " (%zu trainable, %zu frozen)", facts->params - frozen, frozen);
    add(facts, "\n");
    if (model->note)
        model->note(note, sizeof note, model, plan->spec.model_cfg, &plan->data->io);
    if (note[0])
        add(facts, "          %s\n", note);
    if (plan->weights_note[0])
        add(facts, "          weights: %s\n", plan->weights_note);
}

static void add_weights(co_plan *plan)
{
    const co_new_head *head = &plan->first.new_head;

    if (!plan->first.path)
        return;
    if (plan->first.got)
        add(&plan->facts, "weights   %s (%s%s)", plan->first.got->name,
            plan->first.got->was_there ? "in the cache" : "downloaded",
            plan->first.got->has_sum ? ", SHA-256 compared" : "; its server states no checksum");
    else
        add(&plan->facts, "weights   %s", plan->first.path);
    if (head->skip[0] && head->there[0])
        add(&plan->facts, "; %s starts anew: %s there, %s here", head->skip, head->there, head->here);
    else if (head->skip[0])
        add(&plan->facts, "; %s starts anew: the file has none", head->skip);
    add(&plan->facts, "\n");
    if (plan->first.public_row)
        add(&plan->facts, "          they were made with data.normalize=%s\n",
            plan->first.public_row->normalize);
}

/* The highest rate at which a parameter that was loaded is trained; 0: only the new head is. */
static double rate_of_loaded(const co_plan *plan)
{
    const char *head = plan->first.new_head.skip;
    double most = 0;

    for (int i = 0; i < plan->layout->n; i++) {
        const co_entry *e = &plan->layout->entry[i];
        if (e->kind != CO_KIND_PARAM || plan->recipe.rule[i].frozen ||
            (*head && fnmatch(head, e->name, 0) == 0))
            continue;
        double rate = plan->recipe.lr * (double)plan->recipe.rule[i].rate;
        most = rate > most ? rate : most;
    }
    return most;
}

static void warn_of_rate(co_plan *plan)
{
    double limit = plan->spec.optim->pretrained_lr, rate = plan->first.path ? rate_of_loaded(plan) : 0;

    if (rate <= limit || limit <= 0)
        return;
    add(&plan->facts,
        "warning   optim.lr=%g is high for weights that were loaded: above %g, %s usually destroys them in "
        "the first "
        "steps; try optim.lr=%g, or give the head alone a high rate (optim.lr_groups)\n",
        rate, limit, plan->spec.optim->name, limit / 5);
}

static void add_data(co_plan *plan)
{
    co_plan_facts *facts = &plan->facts;
    const co_dataset *data = plan->data;
    char shape[64];

    add(facts, "data      %s: %u train, %u val, %u test; ", plan->spec.data->name,
        data->count[CO_SPLIT_TRAIN], data->count[CO_SPLIT_VAL], data->count[CO_SPLIT_TEST]);
    if (data->io.task == CO_TASK_LM)
        add(facts, "text, %lld tokens", (long long)data->io.classes);
    else if (data->io.task == CO_TASK_PAIRS)
        add(facts, "pairs of sentences, %lld and %lld tokens", (long long)data->io.sources,
            (long long)data->io.classes);
    else if (data->io.users)
        add(facts, "ratings of %lld item%s by %lld user%s", (long long)data->io.items,
            data->io.items == 1 ? "" : "s", (long long)data->io.users, data->io.users == 1 ? "" : "s");
    else
        add(facts, "sample %s", co_shape_text(shape, sizeof shape, &data->io.x));
    if (data->io.task == CO_TASK_CLASSIFY)
        add(facts, ", %lld classes", (long long)data->io.classes);
    add(facts, "; fingerprint %.12s\n", data->fingerprint);
    for (const char *at = data->note; *at;) {
        size_t len = strcspn(at, "\n");
        add(facts, "          %.*s\n", (int)len, at);
        at += len + (at[len] == '\n');
    }
}

/* "global batch = slice x slices", and a remark if the training set is smaller than a batch. */
static void add_batch(co_plan *plan)
{
    co_plan_facts *facts = &plan->facts;
    uint32_t slices = (uint32_t)plan->slices, most = (plan->batch + slices - 1) / slices,
             count = plan->data->count[CO_SPLIT_TRAIN];

    add(facts, "batch     global batch %u = slice %u x %u slice%s%s", plan->batch, plan->batch / slices,
        slices, slices == 1 ? "" : "s",
        co_is_text(&plan->data->io)   ? " (cut by tokens, so that slices weigh the same)"
        : most > plan->batch / slices ? " (some with one sample more)"
                                      : "");
    if (count < plan->batch)
        add(facts, "; larger than the data: each epoch is one step of %u sample%s", count,
            count == 1 ? "" : "s");
    if (plan->cfg.batch_size_per_rank && plan->batch > plan->cfg.batch_size_per_rank)
        add(facts,
            "\n          = %lld a rank x %lld ranks; optim.lr is not scaled with the ranks (by the linear "
            "rule it would "
            "be %g)",
            (long long)plan->cfg.batch_size_per_rank, (long long)(plan->batch / plan->cfg.batch_size_per_rank),
            plan->recipe.lr * (double)plan->batch / (double)plan->cfg.batch_size_per_rank);
    add(facts, "\nsteps     %lld per epoch", (long long)plan->units.steps_per_epoch);
    if (facts->endless)
        add(facts, ", no limit (trainer.max_epochs=-1)");
    else
        add(facts, ", %lld in all", (long long)plan->units.steps);
    if (plan->start.step)
        add(facts, "; continuing after step %lld", (long long)plan->start.step);
    add(facts, "\n");
}

static void add_ranks(co_plan *plan)
{
    co_plan_facts *facts = &plan->facts;
    int idle = facts->ranks_asked - plan->ranks;
    char team[32] = "";

    if (plan->threads > 1)
        snprintf(team, sizeof team, " x %d threads", plan->threads);
    if (idle > 0)
        add(facts,
            "ranks     %d rank%s%s: the batch has only %d slice%s, so %d of the %d ranks asked for %s not "
            "started\n",
            plan->ranks, plan->ranks == 1 ? "" : "s", team, plan->slices, plan->slices == 1 ? "" : "s", idle,
            facts->ranks_asked, idle == 1 ? "is" : "are");
    else
        add(facts, "ranks     %d%s%s on this host; %d slice%s at most %d busy\n", plan->ranks,
            plan->threads == 1 ? ""
            : plan->ranks == 1 ? " rank"
                               : " ranks",
            team, plan->slices, plan->slices == 1 ? " keeps" : "s keep", plan->slices);
}

/* The first deal: nobody's speed is known yet. */
static void add_deal(co_plan_facts *facts, const co_deal *deal, int slices)
{
    facts->share_least = slices;
    for (int h = 0; h < deal->hosts; h++) {
        int share = deal->from[h + 1] - deal->from[h];
        facts->share_least = share < facts->share_least ? share : facts->share_least;
        facts->share_most = share > facts->share_most ? share : facts->share_most;
    }
    add(facts, "deal      %d slice%s over %d hosts: ", slices, slices == 1 ? "" : "s", deal->hosts);
    if (facts->share_least < facts->share_most)
        add(facts, "%d or ", facts->share_least);
    add(facts, "%d each, then by the speed that each host shows\n", facts->share_most);
}

/* Pieces to the owners of chunks, sums from them, statistics to everybody; with equal shares. */
static void add_wire(co_plan *plan)
{
    co_deal deal = {.hosts = plan->spec.hosts};
    co_piece list[2 * CO_MAX_LEVELS];
    int equal[CO_MAX_MEMBERS] = {0}, pieces = 0;

    if (plan->spec.hosts < 2)
        return;
    co_deal_leaves(&deal, plan->slices, equal);
    add_deal(&plan->facts, &deal, plan->slices);
    for (int h = 0; h < deal.hosts; h++)
        pieces += co_deal_pieces(&deal, &plan->cut[CUT_FULL], h, list);
    double hosts = deal.hosts, others = hosts - 1, dense = 4.0 * (double)plan->layout->dense;
    double rows = 4.0 * (double)plan->rows.leaf_elements * plan->slices / hosts * others;
    double stats = (sizeof(struct stats) + (double)plan->slices * sizeof(leaf_stat)) * others;
    plan->facts.wire_bytes = dense * others / hosts * (pieces / hosts + 1) + rows + stats;
    add(&plan->facts, "wire      %.2f MB a step from each of %d hosts\n", plan->facts.wire_bytes * 1e-6,
        deal.hosts);
}

static void add_memory(co_plan *plan)
{
    const co_arena *a = &plan->arena;

    add(&plan->facts,
        "memory    %.1f MiB = %.1f shared (weights and moments %.1f, leaves and work %.1f) + %.1f private\n",
        mib(a->bytes + plan->facts.private_bytes), mib(a->bytes),
        mib(co_arena_sum(a, "weights") + co_arena_sum(a, "moments")),
        mib(co_arena_sum(a, "leaves") + co_arena_sum(a, "work")), mib(plan->facts.private_bytes));
}

static void add_recipe(co_plan *plan)
{
    co_plan_facts *facts = &plan->facts;

    add(facts, "optimiser %s, learning rate %g", plan->spec.optim->name, plan->recipe.lr);
    if (plan->cfg.ema > 0)
        add(facts, ", average of the weights with decay %g", plan->cfg.ema);
    if (plan->recipe.clip_norm > 0)
        add(facts, ", gradient's norm clipped to %g", plan->recipe.clip_norm);
    if (plan->recipe.clip_value > 0)
        add(facts, ", gradient clipped to +-%g", plan->recipe.clip_value);
    add(facts, "\n");
    if (!plan->spec.schedule)
        return;
    add(facts, "schedule  %s", plan->spec.schedule->name);
    if (plan->recipe.warmup)
        add(facts, " after %lld steps of warm-up from %g of the rate", (long long)plan->recipe.warmup,
            plan->cfg.warmup_start);
    add(facts, "\n");
    double reach = plan->ema >= 0 ? 1 / (1 - plan->cfg.ema) : 0;
    if (plan->ema >= 0)
        add(facts, "average   of about the last %.0f steps' weights: what is evaluated%s\n", reach,
            (double)plan->units.steps < 3 * reach ? "; this run is short for it, and it will lag behind" : "");
}

static int32_t label_of(const co_dataset *data, co_split split, uint32_t id)
{
    int32_t label = CO_IGNORE;

    co_dataset_fill(data, split, &id, (co_slice_shape){.n = 1}, &(co_draw){0}, &(co_slice_dst){.y = &label});
    return label;
}

/* The class of val's first n samples; -1: there are several. The last is compared first, since sets are often sorted by
 * class. */
static int64_t only_class(const co_dataset *data, uint32_t n)
{
    int32_t first = label_of(data, CO_SPLIT_VAL, 0);

    if (first < 0 || label_of(data, CO_SPLIT_VAL, n - 1) != first)
        return -1;
    for (uint32_t id = 1; id + 1 < n; id++)
        if (label_of(data, CO_SPLIT_VAL, id) != first)
            return -1;
    return first;
}

/* trainer.limit_val_batches takes the first samples, and a set sorted by class begins with one class. */
static void warn_of_one_class(co_plan *plan)
{
    enum { MOST = 1024 }; /* samples that are looked at: pictures must be decoded for it */
    const co_dataset *data = plan->data;
    uint32_t n = plan->eval_count[CO_SPLIT_VAL];

    if (!data->count_classes || data->io.task != CO_TASK_CLASSIFY || data->io.classes < 2 ||
        !plan->units.cycle || n < 2 || n > MOST || n >= data->count[CO_SPLIT_VAL])
        return;
    int64_t label = only_class(data, n);
    const char *name = label >= 0 && data->class_name ? data->class_name(data, label) : NULL;
    if (label >= 0)
        add(&plan->facts,
            "warning   trainer.limit_val_batches: the first %u samples of val are all of class %lld%s%s%s, "
            "so accuracy "
            "means little; take more batches\n",
            n, (long long)label, name ? " (" : "", name ? name : "", name ? ")" : "");
}

void plan_lines(co_plan *plan)
{
    plan->facts.lines[0] = '\0';
    add_model(plan);
    add_weights(plan);
    add_data(plan);
    add_batch(plan);
    add_ranks(plan);
    add_memory(plan);
    add_wire(plan);
    add_recipe(plan);
    warn_of_rate(plan);
    warn_of_one_class(plan);
    add(&plan->facts, "kernels   %s\n", plan->facts.kernels);
}
