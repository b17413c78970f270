/* agree.c -- see agree_int.h. */
#include "train/agree_int.h"

#include "base/hash.h"
#include "train/rank_int.h"

/* --- when, and who -------------------------------------------------------------------------------------- */
bool verify_due(const co_plan *plan, const unit *u)
{
    int64_t every = plan->cfg.verify_every, saves = plan->cfg.ckpt_every_steps;

    if (plan->hosts == 1 || every == 0 || u->kind != UNIT_TRAIN)
        return false;
    int64_t before = u->step - 1; /* steps of the state that this unit begins with */
    return u->step % every == 0 || (saves && before > 0 && before % saves == 0) ||
           (before > 0 && before % plan->units.steps_per_epoch == 0);
}

static bool has_leaves(const co_deal *deal, int h)
{
    return deal->from[h] < deal->from[h + 1];
}

/* A left sibling: its gradient lies alone in its buffer, right after it was computed. Which one changes from
 * time to time; -1: there is none. */
static int leaf_to_audit(const co_plan *plan, const co_deal *deal, const unit *u, int owner)
{
    int first = (deal->from[owner] + 1) / 2, last = (deal->from[owner + 1] + 1) / 2; /* pairs of siblings */
    uint64_t mixed = (uint64_t)u->step * UINT64_C(0x9e3779b97f4a7c15);

    if (first >= last)
        return -1;
    int leaf = 2 * (first + (int)((mixed >> 32) % (uint64_t)(last - first)));
    return co_cut_is_empty(&plan->cut[cut_of_step(plan, u->step)], leaf, leaf + 1) ? -1 : leaf;
}

audit audit_of(const co_plan *plan, const co_deal *deal, const unit *u, int owner)
{
    audit out = {.leaf = -1};

    if (!verify_due(plan, u) || plan->slices < 2 || (out.leaf = leaf_to_audit(plan, deal, u, owner)) < 0)
        return out;
    for (int i = 0; i < deal->hosts && out.n < AUDITORS; i++)
        if (has_leaves(deal, (owner + i) % deal->hosts))
            out.member[out.n++] = (owner + i) % deal->hosts;
    return out;
}

uint64_t hash_of_state(const co_plan *plan, const struct regions *regions)
{
    uint64_t all = 0;

    for (int part = 0; part <= plan->moments; part++)
        all = all * 31 + co_hash_large(state_part(regions, part), plan->layout->count * sizeof(float));
    return all ? all : 1; /* 0 means none */
}

uint64_t outvoted(const uint64_t *hash, int members)
{
    uint64_t all = 0, most = 0;
    int votes = 0;

    for (int h = 0; h < members; h++)
        all |= (uint64_t)(hash[h] != 0) << h;
    for (int h = 0; h < members; h++) {
        uint64_t same = 0;
        for (int k = 0; hash[h] && k < members; k++)
            same |= (uint64_t)(hash[k] == hash[h]) << k;
        if (__builtin_popcountll(same) > votes) {
            votes = __builtin_popcountll(same);
            most = same;
        }
    }
    return most == all ? 0 : 2 * votes > __builtin_popcountll(all) ? all & ~most : all;
}

uint64_t outvoted_leaves(const co_plan *plan, const co_deal *deal, const unit *u,
                         const uint64_t hash[CO_MAX_MEMBERS][AUDITORS])
{
    uint64_t out = 0;

    for (int owner = 0; owner < deal->hosts; owner++) {
        audit who = audit_of(plan, deal, u, owner);
        uint64_t votes[CO_MAX_MEMBERS] = {0};
        for (int i = 0; i < who.n; i++)
            votes[who.member[i]] = hash[who.member[i]][i];
        uint64_t these = who.n < 2 ? 0 : outvoted(votes, deal->hosts);
        if (these && (!out || __builtin_popcountll(these) < __builtin_popcountll(out)))
            out = these; /* the clearest verdict */
    }
    return out;
}

/* --- ranks ---------------------------------------------------------------------------------------------- */
static void publish(struct rank *rank, int i, const float *gradient, const double *stat)
{
    uint64_t hash = co_hash_large(gradient, rank->plan->layout->dense * sizeof *gradient) ^
                    co_fnv1a64(stat, CO_STATS * sizeof *stat);
    control *ctl = rank->regions->ctl;

    atomic_store_explicit(&ctl->host.audit[i], hash ? hash : 1, memory_order_relaxed);
    atomic_store_explicit(&ctl->host.audited[i], rank->turn, memory_order_release);
}

void audit_own(struct rank *rank, int64_t step, int leaf, const float *gradient, const double *stat)
{
    unit u = {.kind = UNIT_TRAIN, .step = step};

    if (!verify_due(rank->plan, &u))
        return;
    audit who = audit_of(rank->plan, &rank->deal, &u, rank->deal.me);
    if (who.n > 1 && who.leaf == leaf)
        publish(rank, 0, gradient, stat);
}

/* The first slot that has a leaf of its own does it for the host. */
static bool audits(const struct rank *rank, const co_tree *tree)
{
    for (int slot = 0; slot < (int)rank->who.slot; slot++)
        if (tree->fold[slot].n_ops > 0)
            return false;
    return tree->fold[rank->who.slot].n_ops > 0;
}

/* In the buffer of this rank's first leaf, which is computed after this. */
static void compute_again(struct rank *rank, int64_t step, int leaf, int i)
{
    const co_plan *plan = rank->plan;
    const co_fold *fold = &rank->tree[cut_of_step(plan, step)].fold[rank->who.slot];
    char *input = rank->regions->audit_input[rank->who.slot];
    co_load *load = &rank->audit;
    co_rows rows[MAX_LISTS];
    double stat[CO_STATS] = {0};

    load_of_leaf(plan, plan->audit_order, step, leaf, load);
    const shape_exec *shaped = exec_for(&plan->train, load->shape);
    slice_dst(shaped, input, &load->dst);
    if (co_dataset_fill(plan->data, CO_SPLIT_TRAIN, load->ids, load->shape, &load->draw, &load->dst) != 0)
        return; /* a sample that this host cannot read: another matter */
    float *gradient = leaf_buffer_of(plan, rank->regions, (int)rank->who.slot, fold->op[0].dst);
    rows_of_leaf(plan, rank->regions, fold->op[0].leaf, rows);
    co_bases bases = {.state = rank->regions->state,
                      .leaf = gradient,
                      .rows = rows,
                      .input = input,
                      .work = rank->work,
                      .stat = stat,
                      .work_bytes = rank->work_bytes,
                      .team = rank->team};
    set_rows(&bases, load->shape);
    co_exec_run(shaped->exec, &bases, &(co_run){.seed = (uint64_t)plan->cfg.seed, .step = (uint32_t)step},
                &rank->me->record.call);
    publish(rank, i, gradient, stat);
}

void audit_others(struct rank *rank, int64_t step)
{
    unit u = {.kind = UNIT_TRAIN, .step = step};

    if (!verify_due(rank->plan, &u) || !audits(rank, &rank->tree[cut_of_step(rank->plan, step)]))
        return;
    for (int owner = 0; owner < rank->deal.hosts; owner++) {
        audit who = audit_of(rank->plan, &rank->deal, &u, owner);
        for (int i = 1; i < who.n; i++)
            if (who.member[i] == rank->deal.me) {
                rank_phase(rank, CO_PHASE_COMPUTE, (uint32_t)who.leaf);
                compute_again(rank, step, who.leaf, i);
            }
    }
}
