/* test_optim.c -- compares each optimiser with PyTorch over twenty steps, and with itself applied piece by
 * piece. */
#include "optim/optim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/json.h"
#include "harness.h"

enum { ROWS = 7, WIDTH = 11, N = ROWS * WIDTH };
static const float shrink[5] = {1, 1e-2f, 1e-4f, 1e-6f, 1e-8f};

/* One parameter and its optimiser. */
struct seat {
    const co_optim_def *def;
    void *cfg;
    float w[N], m[3][N], g[N]; /* no optimiser keeps more moments */
    uint64_t words;
    double momentum; /* of this step; 0: the configuration's */
};

static void sit(struct seat *s, const char *name, const json_t *options, uint64_t state)
{
    const char *key;
    json_t *value;

    *s = (struct seat){.def = co_optim_find(name), .words = state};
    CHECK(s->def, "no optimiser %s", name);
    s->cfg = co_zalloc(s->def->cfg_size);
    CHECK_OK(co_options_default(s->def->options, s->cfg));
    json_object_foreach((json_t *)options, key, value)
        CHECK_OK(co_option_set(co_option_find(s->def->options, key), s->cfg, key, json_string_value(value)));
    for (int i = 0; i < N; i++)
        s->w[i] = test_unit(&s->words);
}

static void draw_gradient(struct seat *s)
{
    for (int i = 0; i < N; i++)
        s->g[i] = test_unit(&s->words) * shrink[i % WIDTH % 5];
}

static co_apply piece(struct seat *s, int64_t t, float scale, int start, int n)
{
    co_apply a = {.w = s->w + start, .g = s->g + start, .n = (size_t)n, .scale = scale, .t = t};
    a.momentum = s->momentum;
    for (int k = 0; k < 3; k++)
        a.m[k] = s->m[k] + start;
    a.lr = s->def->lr(s->cfg);
    return a;
}

static void step_whole(struct seat *s, int64_t t, float scale)
{
    co_apply a = piece(s, t, scale, 0, N);
    s->def->apply(s->cfg, &a);
}

/* Row r has no gradient in step t when (r + t) % 3 == 0, as in make_optim.py. */
static void step_rows(struct seat *s, int64_t t, float scale)
{
    for (int r = 0; r < ROWS; r++) {
        co_apply a = piece(s, t, scale, r * WIDTH, WIDTH);
        if ((r + t) % 3 != 0)
            s->def->apply_sparse(s->cfg, &a);
    }
}

/* Differences are relative to the value, or to the size of its terms if that is larger: 1 for weights (power
 * 0); for moments the size of the gradient, which weight decay may raise. */
static double worst_of(const char *what, const float *got, const json_t *want, int power, double decay)
{
    double worst = 0;

    CHECK(json_array_size(want) == N, "%s has %zu values", what, json_array_size(want));
    for (int i = 0; i < N; i++) {
        double w = json_number_value(json_array_get(want, (size_t)i));
        double least = pow((double)shrink[i % WIDTH % 5] + decay, power);
        double diff = fabs((double)got[i] - w) / fmax(fabs(w), least);
        CHECK(diff <= 1e-6, "%s[%d] is %.9g, PyTorch has %.9g: relative difference %.2g", what, i,
              (double)got[i], w, diff);
        worst = fmax(worst, diff);
    }
    return worst;
}

static double case_matches(const json_t *c, const json_t *all)
{
    struct seat s;
    const char *names[CO_MAX_MOMENTS];
    long long steps = 0, state = 0;
    double scale = 0;
    bool sparse = json_is_true(json_object_get(c, "sparse"));

    CHECK(co_json_i64(all, "steps", &steps) && co_json_i64(all, "state", &state) &&
              co_json_f64(all, "scale", &scale),
          "optim.json lacks its numbers");
    sit(&s, co_json_str(c, "optim"), json_object_get(c, "options"), (uint64_t)state);
    for (int64_t t = 1; t <= steps; t++) {
        draw_gradient(&s);
        s.momentum = json_number_value(json_array_get(json_object_get(c, "momenta"), (size_t)t - 1));
        (sparse ? step_rows : step_whole)(&s, t, (float)scale);
    }
    double worst = worst_of("weight", s.w, json_object_get(c, "weights"), 0, 0);
    const char *decay = co_json_str(json_object_get(c, "options"), "weight_decay");
    bool coupled = decay && s.def != co_optim_find("adamw");
    const json_t *moments = json_object_get(c, "moments");
    int n = s.def->moments(s.cfg, names);
    CHECK((size_t)n == json_object_size(moments), "%d moments, PyTorch keeps %zu", n,
          json_object_size(moments));
    for (int k = 0; k < n; k++) {
        const json_t *want = json_object_get(moments, names[k]);
        CHECK(want, "PyTorch has no moment named %s", names[k]);
        worst = fmax(worst, worst_of(names[k], s.m[k], want, strcmp(names[k], "exp_avg_sq") == 0 ? 2 : 1,
                                     coupled ? strtod(decay, NULL) : 0));
    }
    co_free(s.cfg);
    return worst;
}

TEST(twenty_steps_of_each_optimiser_are_those_of_pytorch)
{
    json_t *all, *c;
    size_t i;

    CHECK_OK(co_json_read(&all, test_repo("tests/golden/optim.json"), 1 << 20));
    json_array_foreach(json_object_get(all, "cases"), i, c)
    {
        double worst = case_matches(c, all);
        test_note("%s%s%s: worst relative difference %.1e", co_json_str(c, "optim"),
                  json_is_true(json_object_get(c, "sparse")) ? ", sparse rows" : "",
                  json_object_get(c, "momenta") ? ", cycled momentum" : "", worst);
    }
    CHECK(i == 18, "%zu cases", i);
    json_decref(all);
}

/* Every option that changes the arithmetic is on. */
static json_t *all_options(const char *name)
{
    if (strcmp(name, "sgd") == 0)
        return json_pack("{s:s,s:s,s:s}", "momentum", "0.9", "nesterov", "true", "weight_decay", "0.01");
    if (!co_option_find(co_optim_find(name)->options, "weight_decay"))
        return json_object();
    return json_pack("{s:s}", "weight_decay", "0.1");
}

TEST(an_optimiser_cut_into_odd_pieces_gives_the_same_bits)
{
    static const int pieces[] = {1, 2, 3, 5, 8, 13, 31, 64};

    for (int d = 0; co_optims[d]; d++) {
        for (size_t p = 0; p < CO_COUNT(pieces); p++) {
            struct seat whole, cut;
            json_t *options = all_options(co_optims[d]->name);
            sit(&whole, co_optims[d]->name, options, 7);
            sit(&cut, co_optims[d]->name, options, 7);
            for (int64_t t = 1; t <= 3; t++) {
                draw_gradient(&whole);
                draw_gradient(&cut);
                step_whole(&whole, t, 0.3f);
                for (int at = 0; at < N; at += pieces[p]) {
                    co_apply a = piece(&cut, t, 0.3f, at, N - at < pieces[p] ? N - at : pieces[p]);
                    cut.def->apply(cut.cfg, &a);
                }
            }
            CHECK(memcmp(whole.w, cut.w, sizeof cut.w) == 0 && memcmp(whole.m, cut.m, sizeof cut.m) == 0,
                  "%s in pieces of %d", co_optims[d]->name, pieces[p]);
            co_free(whole.cfg);
            co_free(cut.cfg);
            json_decref(options);
        }
    }
}

/* The bits are the same with every compiler and CPU. They change only with the rule itself, which changes
 * every trained weight. */
TEST(twenty_steps_of_each_optimiser_have_pinned_bits)
{
    static const uint64_t want[] = {0x98ce5532c938c5e0u, 0x9c9afa4b4fa2ba0du, 0x516a155a2c5ded46u,
                                    0x520ae33a7444bfa6u};

    for (int d = 0; co_optims[d]; d++) {
        struct seat s;
        CHECK((size_t)d < CO_COUNT(want), "no pinned bits for %s: add them here", co_optims[d]->name);
        json_t *options = all_options(co_optims[d]->name);
        sit(&s, co_optims[d]->name, options, 9);
        for (int64_t t = 1; t <= 20; t++) {
            draw_gradient(&s);
            (t % 2 ? step_whole : step_rows)(&s, t, 0.3f);
        }
        uint64_t got = co_fnv1a64(s.w, sizeof s.w) ^ co_fnv1a64(s.m, sizeof s.m);
        CHECK(got == want[d], "%s: 0x%016llxu", co_optims[d]->name, (unsigned long long)got);
        co_free(s.cfg);
        json_decref(options);
    }
}

TEST(weight_decay_leaves_alone_what_is_marked_no_decay)
{
    static const char *const names[] = {"sgd", "adam", "adamw"};

    for (size_t d = 0; d < CO_COUNT(names); d++) {
        struct seat spared, plain;
        json_t *none = json_pack("{s:s}", "weight_decay", "0"),
               *some = json_pack("{s:s}", "weight_decay", "0.5");
        sit(&plain, names[d], none, 3);
        sit(&spared, names[d], some, 3);
        draw_gradient(&plain);
        draw_gradient(&spared);
        step_whole(&plain, 1, 1);
        co_apply a = piece(&spared, 1, 1, 0, N);
        a.no_decay = true;
        spared.def->apply(spared.cfg, &a);
        CHECK(memcmp(plain.w, spared.w, sizeof plain.w) == 0, "%s decays what is spared", names[d]);
        a.no_decay = false;
        spared.def->apply(spared.cfg, &a);
        step_whole(&plain, 1, 1);
        CHECK(memcmp(plain.w, spared.w, sizeof plain.w) != 0, "%s never decays", names[d]);
        co_free(plain.cfg);
        co_free(spared.cfg);
        json_decref(none);
        json_decref(some);
    }
}

TEST(the_table_finds_optimisers_by_name_with_pytorch_s_defaults)
{
    static const struct {
        const char *name;
        double lr;
        int moments;
    } want[] = {{"sgd", 1e-3, 0}, {"adam", 1e-3, 2}, {"adamw", 1e-3, 2}, {"sparse_adam", 1e-3, 2}};
    const char *names[CO_MAX_MOMENTS];

    CHECK(!co_optim_find("adagrad"), "found what is not there");
    for (size_t i = 0; i < CO_COUNT(want); i++) {
        struct seat s;
        sit(&s, want[i].name, NULL, 1);
        CHECK(s.def == co_optims[i], "%s is not row %zu", want[i].name, i);
        CHECK(s.def->lr(s.cfg) == want[i].lr, "%s: lr %g", want[i].name, s.def->lr(s.cfg));
        CHECK(s.def->moments(s.cfg, names) == want[i].moments, "%s: moments", want[i].name);
        CHECK(co_option_find(s.def->options, "lr"), "%s has no lr", want[i].name);
        co_free(s.cfg);
    }
    CHECK(strcmp(co_option_find(co_optim_find("adamw")->options, "weight_decay")->fallback, "1e-2") == 0,
          "adamw's weight decay is %s",
          co_option_find(co_optim_find("adamw")->options, "weight_decay")->fallback);
}

TEST(a_step_s_own_momentum_equal_to_the_configured_changes_no_bit)
{
    for (int d = 0; co_optims[d]; d++) {
        struct seat own, set;
        json_t *options = all_options(co_optims[d]->name);
        sit(&own, co_optims[d]->name, options, 7);
        sit(&set, co_optims[d]->name, options, 7);
        set.momentum = 0.9;
        for (int64_t t = 1; t <= 3; t++) {
            draw_gradient(&own);
            draw_gradient(&set);
            step_whole(&own, t, 0.3f);
            step_whole(&set, t, 0.3f);
        }
        CHECK(memcmp(own.w, set.w, sizeof own.w) == 0, "%s: weights differ", co_optims[d]->name);
        set.momentum = 0.5;
        step_whole(&own, 4, 0.3f);
        step_whole(&set, 4, 0.3f);
        CHECK(memcmp(own.w, set.w, sizeof own.w) != 0, "%s: the step's momentum is not used",
              co_optims[d]->name);
        co_free(own.cfg);
        co_free(set.cfg);
        json_decref(options);
    }
}

TEST(sgd_without_a_buffer_leaves_a_schedule_s_momentum_alone)
{
    struct seat s, plain;

    sit(&s, "sgd", NULL, 1);
    sit(&plain, "sgd", NULL, 1);
    draw_gradient(&s);
    draw_gradient(&plain);
    co_apply a = piece(&s, 1, 1, 0, N);
    a.momentum = 0.95;
    a.m[0] = NULL;
    s.def->apply(s.cfg, &a);
    step_whole(&plain, 1, 1);
    CHECK(memcmp(s.w, plain.w, sizeof s.w) == 0, "it is used");
    co_free(s.cfg);
    co_free(plain.cfg);
}

TEST(nesterov_without_momentum_is_refused_with_what_to_set)
{
    struct seat s;
    json_t *bad = json_pack("{s:s}", "nesterov", "true");
    json_t *good = json_pack("{s:s,s:s}", "nesterov", "true", "momentum", "0.9");

    sit(&s, "sgd", bad, 1);
    CHECK_FAILS(s.def->check(s.cfg), CO_EINPUT, "try optim.momentum=0.9");
    co_free(s.cfg);
    sit(&s, "sgd", good, 1);
    CHECK_OK(s.def->check(s.cfg));
    co_free(s.cfg);
    json_decref(bad);
    json_decref(good);
}

TEST(the_clip_factor_is_pytorch_s)
{
    CHECK(co_clip_factor(10, 0) == 1 && co_clip_factor(10, -1) == 1, "clips without a max_norm");
    CHECK(co_clip_factor(0.5, 1) == 1, "a short gradient is scaled by %g", co_clip_factor(0.5, 1));
    CHECK(co_clip_factor(4, 1) == 1 / (4 + 1e-6), "got %.17g", co_clip_factor(4, 1));
    CHECK(co_clip_factor(1, 1) < 1, "the small term is missing");
}

TEST(a_sum_of_squares_runs_in_eight_lanes)
{
    static float x[1031];
    static const size_t lengths[] = {0, 1, 7, 8, 9, 63, 64, 1000, 1031};
    uint64_t words = 5;

    for (size_t i = 0; i < CO_COUNT(x); i++)
        x[i] = test_unit(&words) * (i % 13 == 0 ? 1e8f : 1e-3f);
    for (size_t k = 0; k < CO_COUNT(lengths); k++) {
        double lane[8] = {0};
        bool finite = true;
        for (size_t i = 0; i < lengths[k]; i++)
            lane[i % 8] += (double)x[i] * (double)x[i];
        double want = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
        double got = co_sum_squares(x, lengths[k], &finite);
        CHECK(got == want && finite, "n=%zu: %.17g, not %.17g", lengths[k], got, want);
        for (size_t piece = 8; piece <= 24; piece += 8) {
            co_squares squares = {0};
            for (size_t at = 0, n; at < lengths[k]; at += n) {
                n = lengths[k] - at < piece ? lengths[k] - at : piece;
                co_squares_add(&squares, x + at, n);
            }
            got = co_squares_total(&squares, &finite);
            CHECK(got == want && finite, "n=%zu by %zu: %.17g, not %.17g", lengths[k], piece, got, want);
        }
    }
}

TEST(a_sum_of_squares_sees_one_element_that_is_not_finite)
{
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    float x[19];
    bool finite;

    for (size_t k = 0; k < CO_COUNT(bad); k++)
        for (int at = 0; at < 19; at++) {
            for (int i = 0; i < 19; i++)
                x[i] = 3.4e38f; /* the squares of the largest floats do not overflow */
            finite = true;
            co_sum_squares(x, 19, &finite);
            CHECK(finite, "finite elements are called not finite");
            x[at] = bad[k];
            co_sum_squares(x, 19, &finite);
            CHECK(!finite, "element %d = %g went unseen", at, (double)bad[k]);
            x[at] = 0;
            co_sum_squares(x, 19, &finite);
            CHECK(!finite, "the flag was set back");
        }
}
