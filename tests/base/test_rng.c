/* Known answers, laws of large numbers, and the bits of a few draws, which must never change. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"

/* The published vectors of Philox4x32-10 (Random123, kat_vectors): zeros, ones, digits of pi. */
TEST(philox_gives_the_published_answers)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < CO_COUNT(kat); i++) {
        const uint32_t *c = kat[i].counter;
        uint32_t got[4];
        co_rng_key key = {{kat[i].key[0], kat[i].key[1]}};
        co_rng_draw(got, key, c[3], c[2], c[1], c[0]);
        CHECK(memcmp(got, kat[i].want, sizeof got) == 0, "vector %zu: %08x %08x %08x %08x", i, got[0], got[1],
              got[2], got[3]);
    }
}

TEST(every_coordinate_changes_the_draw)
{
    co_rng_key key = co_rng_key_make(1, CO_RNG_TEST), seed = co_rng_key_make(2, CO_RNG_TEST),
               purpose = co_rng_key_make(1, CO_RNG_DATA);
    uint32_t u[7][4];
    co_rng_draw(u[0], key, 0, 0, 0, 0);
    co_rng_draw(u[1], key, 1, 0, 0, 0);
    co_rng_draw(u[2], key, 0, 1, 0, 0);
    co_rng_draw(u[3], key, 0, 0, 1, 0);
    co_rng_draw(u[4], key, 0, 0, 0, 1);
    co_rng_draw(u[5], seed, 0, 0, 0, 0);
    co_rng_draw(u[6], purpose, 0, 0, 0, 0);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < i; j++)
            CHECK(memcmp(u[i], u[j], sizeof u[i]) != 0, "draws %d and %d are the same", i, j);
}

TEST(a_stream_is_the_fnv1a_of_its_name)
{
    CHECK(co_rng_stream("") == 0x811c9dc5, "%08x", co_rng_stream(""));
    CHECK(co_rng_stream("a") == 0xe40c292c, "%08x", co_rng_stream("a"));
    CHECK(co_rng_stream("foobar") == 0xbf9cf968, "%08x", co_rng_stream("foobar"));
}

TEST(a_unit_is_at_least_0_and_below_1)
{
    CHECK(co_rng_unit(0) == 0 && co_rng_unit(255) == 0, "the low 8 bits count");
    CHECK(co_rng_unit(UINT32_MAX) == 1 - 0x1p-24f, "%a", (double)co_rng_unit(UINT32_MAX));
}

/* The first n values do not depend on n: only the position decides. */
TEST(a_value_depends_on_its_position_alone)
{
    float all[103], some[103];
    co_rng_key key = co_rng_key_make(7, CO_RNG_TEST);
    for (int normal = 0; normal < 2; normal++) {
        void (*fill)(float *, size_t, float, float, co_rng_key, uint32_t, uint32_t, uint32_t) =
            normal ? co_rng_normal : co_rng_uniform;
        fill(all, 103, -1, 2, key, 3, 4, 5);
        for (size_t n = 0; n <= 103; n++) {
            fill(some, n, -1, 2, key, 3, 4, 5);
            CHECK(memcmp(all, some, n * sizeof *all) == 0, "normal=%d n=%zu", normal, n);
        }
    }
}

enum { MANY = 1 << 20 };

TEST(uniforms_fill_their_interval_evenly)
{
    static float x[MANY];
    int bin[16] = {0};
    co_rng_uniform(x, MANY, -3, 5, co_rng_key_make(11, CO_RNG_TEST), 1, 2, 3);
    for (int i = 0; i < MANY; i++) {
        CHECK(x[i] >= -3 && x[i] <= 5, "x[%d] = %g", i, (double)x[i]);
        bin[x[i] >= 5 ? 15 : (int)((x[i] + 3) * 2)]++;
    }
    for (int b = 0; b < 16; b++) /* five standard deviations of a binomial */
        CHECK(abs(bin[b] - MANY / 16) < 5 * 248, "bin %d has %d of %d", b, bin[b], MANY / 16);
}

TEST(normals_have_the_moments_of_a_normal)
{
    static float x[MANY];
    double m[5] = {0}, most = 0, pair = 0;
    co_rng_normal(x, MANY, 0, 1, co_rng_key_make(12, CO_RNG_TEST), 1, 2, 3);
    for (int i = 0; i < MANY; i++) {
        double p = 1;
        for (int k = 0; k < 5; k++, p *= (double)x[i])
            m[k] += p / MANY;
        most = fmax(most, fabs((double)x[i]));
        pair += i % 2 ? (double)x[i] * (double)x[i - 1] / (MANY / 2) : 0;
    }
    test_note("moments %.4f %.4f %.4f %.4f, largest %.2f", m[1], m[2], m[3], m[4], most);
    CHECK(fabs(m[1]) < 0.005 && fabs(m[2] - 1) < 0.007, "mean %g, variance %g", m[1], m[2]);
    CHECK(fabs(m[3]) < 0.02 && fabs(m[4] - 3) < 0.05, "third %g, fourth %g", m[3], m[4]);
    CHECK(fabs(pair) < 0.008, "the two of a pair correlate: %g", pair);
    CHECK(most > 4 && most < 6.7, "largest %g", most);
}

TEST(mean_and_deviation_shift_and_stretch)
{
    float z[64], x[64];
    co_rng_key key = co_rng_key_make(5, CO_RNG_INIT);
    co_rng_normal(z, 64, 0, 1, key, 9, 0, 0);
    co_rng_normal(x, 64, 10, 0.5f, key, 9, 0, 0);
    for (int i = 0; i < 64; i++)
        CHECK(fabsf(x[i] - (10 + 0.5f * z[i])) < 2e-6f, "%g %g", (double)x[i], (double)z[i]);
}

TEST(a_permutation_has_everyone_once)
{
    static uint32_t p[5000];
    static bool seen[5000];
    static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 31, 32, 33, 1797, 5000};
    for (size_t s = 0; s < CO_COUNT(sizes); s++) {
        co_rng_permute(p, sizes[s], co_rng_key_make(1, CO_RNG_SHUFFLE), 3);
        memset(seen, 0, sizeof seen);
        for (uint32_t i = 0; i < sizes[s]; i++) {
            CHECK(p[i] < sizes[s] && !seen[p[i]], "n=%u: p[%u] = %u", sizes[s], i, p[i]);
            seen[p[i]] = true;
        }
    }
}

TEST(the_24_orders_of_four_are_equally_likely)
{
    int count[256] = {0};
    for (uint32_t step = 0; step < 240000; step++) {
        uint32_t p[4];
        co_rng_permute(p, 4, co_rng_key_make(99, CO_RNG_SHUFFLE), step);
        count[p[0] << 6 | p[1] << 4 | p[2] << 2 | p[3]]++;
    }
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        orders += count[i] > 0;
        CHECK(!count[i] || abs(count[i] - 10000) < 500, "order %02x came %d times of 240000", i, count[i]);
    }
    CHECK(orders == 24, "%d orders", orders);
}

/* The worked example of docs/formats/rng.md. If this fails, every trained weight changes. */
TEST(the_example_of_the_format_page_holds)
{
    static const uint32_t words[4] = {0xa9e857d4, 0xcde80e2c, 0xd79cb3ee, 0xfe3c89ae};
    static const uint32_t order[8] = {4, 2, 5, 3, 0, 7, 6, 1};
    static const float normals[4] = {0.303080082f, -0.853222072f, 0.585448444f, -0.025356032f},
                       units[4] = {0.663701475f, 0.804322124f, 0.84223479f, 0.993111193f};
    co_rng_key key = co_rng_key_make(42, CO_RNG_INIT);
    uint32_t stream = co_rng_stream("fc1.weight"), u[4], p[8];
    float x[4];

    CHECK(key.k[0] == 0x2feb6e95 && key.k[1] == 0xbdd73226, "key %08x %08x", key.k[0], key.k[1]);
    co_rng_draw(u, key, stream, 0, 0, 0);
    CHECK(memcmp(u, words, sizeof u) == 0, "%08x %08x %08x %08x", u[0], u[1], u[2], u[3]);
    co_rng_uniform(x, 4, 0, 1, key, stream, 0, 0);
    CHECK(memcmp(x, units, sizeof x) == 0, "%a %a %a %a", (double)x[0], (double)x[1], (double)x[2],
          (double)x[3]);
    co_rng_normal(x, 4, 0, 1, key, stream, 0, 0);
    CHECK(memcmp(x, normals, sizeof x) == 0, "%a %a %a %a", (double)x[0], (double)x[1], (double)x[2],
          (double)x[3]);
    co_rng_permute(p, 8, co_rng_key_make(42, CO_RNG_SHUFFLE), 0);
    CHECK(memcmp(p, order, sizeof p) == 0, "%u %u %u %u %u %u %u %u", p[0], p[1], p[2], p[3], p[4], p[5],
          p[6], p[7]);
}

TEST(every_compiler_and_cpu_draws_these_bits)
{
    co_sha256 h;
    char hex[65];
    static float x[1001];
    static uint32_t p[1001];
    co_rng_key key = co_rng_key_make(42, CO_RNG_INIT);

    co_sha256_init(&h);
    co_rng_normal(x, 1001, 0.25f, 2, key, co_rng_stream("fc1.weight"), 7, 8);
    co_sha256_add(&h, x, sizeof x);
    co_rng_uniform(x, 1001, -1, 3, key, co_rng_stream("fc1.bias"), 7, 8);
    co_sha256_add(&h, x, sizeof x);
    co_rng_permute(p, 1001, co_rng_key_make(42, CO_RNG_SHUFFLE), 7);
    co_sha256_add(&h, p, sizeof p);
    co_sha256_hex(&h, hex);
    CHECK(strcmp(hex, "12dd23188448d2894d220a02437cf633d4fb9d99f75aaf4603c85aae57c50b94") == 0,
          "the bits changed: %s", hex);
}
