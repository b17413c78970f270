/* Eigenvectors of symmetric matrices: what defines them holds, and their bits are pinned. */
#include "base/eigen.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "harness.h"

enum { MOST = 24 };

static void random_symmetric(double *a, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++)
            a[i * n + k] = a[k * n + i] = (double)test_unit(&seed);
}

static double dot(const double *x, const double *y, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void check_matrix(const double *a, int n)
{
    double copy[MOST * MOST], value[MOST], vector[MOST * MOST];

    memcpy(copy, a, (size_t)n * (size_t)n * sizeof *a);
    co_eigen(copy, n, value, vector);
    for (int i = 0; i < n; i++) {
        const double *v = vector + i * n;
        double largest = 0;
        CHECK(i == 0 || value[i] <= value[i - 1], "n=%d: value %d is larger than the one before", n, i);
        for (int k = 0; k < n; k++) {
            double off = dot(a + k * n, v, n) - value[i] * v[k];
            double angle = dot(v, vector + k * n, n) - (i == k);
            CHECK(fabs(off) < 1e-13 * n && fabs(angle) < 1e-13 * n, "n=%d vector %d: %g, %g", n, i, off, angle);
            largest = fabs(v[k]) > fabs(largest) ? v[k] : largest;
        }
        CHECK(largest > 0, "n=%d: the largest component of vector %d is %g", n, i, largest);
    }
}

TEST(eigenvectors_are_orthogonal_and_satisfy_their_equation)
{
    double a[MOST * MOST];

    for (int n = 1; n <= MOST; n++) {
        random_symmetric(a, n, (uint64_t)n);
        check_matrix(a, n);
    }
}

TEST(matrices_with_equal_or_no_eigenvalues_are_no_trouble)
{
    double a[MOST * MOST] = {0};

    check_matrix(a, 12); /* zero */
    for (int i = 0; i < 12; i++)
        a[i * 12 + i] = 3;
    check_matrix(a, 12); /* one value, twelve times */
    for (int i = 0; i < 12 * 12; i++)
        a[i] = 1;
    check_matrix(a, 12); /* rank 1 */
}

TEST(eigenvectors_have_the_same_bits_from_every_compiler)
{
    static const char want[] = "4089ef5b7fe311713f1cfc7f79ad82c526ac3e2e043d94caec81c52edc7eeeec";
    double a[12 * 12], value[12], vector[12 * 12];
    co_sha256 h;
    char hex[65];

    random_symmetric(a, 12, 7);
    co_eigen(a, 12, value, vector);
    co_sha256_init(&h);
    co_sha256_add(&h, value, sizeof value);
    co_sha256_add(&h, vector, sizeof vector);
    co_sha256_hex(&h, hex);
    CHECK(strcmp(hex, want) == 0, "%s", hex);
}
