/* eigen.c -- Jacobi's method: a rotation in the plane of two axes makes one off-diagonal pair zero.
 *
 * A sweep rotates every pair (p, q) once, in the order of rows. Off-diagonal elements shrink quadratically; a
 * matrix of 12 x 12 needs about 7 sweeps. Only + - * / and sqrt are used, each rounded by IEEE 754, in an
 * order that depends on the values alone: every compiler and CPU gives the same bits.
 */
#include "base/eigen.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SWEEPS = 60 };

/* The rotation of x and y by the angle whose cosine and sine are c and s. */
static void rotate(double *x, double *y, double c, double s)
{
    double was = *x;

    *x = c * was - s * *y;
    *y = s * was + c * *y;
}

/* Makes a[p][q] zero: a becomes J^T a J, and the rows of v, the eigenvectors, turn with it. */
static void turn(double *a, double *v, int n, int p, int q)
{
    double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
    double t = 1 / (fabs(theta) + sqrt(theta * theta + 1));
    double c, s;

    t = theta < 0 ? -t : t;
    c = 1 / sqrt(t * t + 1);
    s = t * c;
    for (int i = 0; i < n; i++) /* columns */
        rotate(&a[i * n + p], &a[i * n + q], c, s);
    for (int i = 0; i < n; i++) { /* rows */
        rotate(&a[p * n + i], &a[q * n + i], c, s);
        rotate(&v[p * n + i], &v[q * n + i], c, s);
    }
}

/* One sweep. False: every element was too small to matter. */
static bool sweep(double *a, double *v, int n)
{
    bool turned = false;

    for (int p = 0; p < n; p++)
        for (int q = p + 1; q < n; q++) {
            double scale = sqrt(fabs(a[p * n + p] * a[q * n + q]));
            if (fabs(a[p * n + q]) <= DBL_EPSILON / 4 * scale || fabs(a[p * n + q]) < DBL_MIN)
                continue;
            turn(a, v, n, p, q);
            turned = true;
        }
    return turned;
}

static void swap_rows(double *x, double *y, int n)
{
    for (int i = 0; i < n; i++) {
        double was = x[i];
        x[i] = y[i];
        y[i] = was;
    }
}

static void fix_sign(double *x, int n)
{
    int largest = 0;

    for (int i = 1; i < n; i++)
        largest = fabs(x[i]) > fabs(x[largest]) ? i : largest;
    bool negative = x[largest] < 0;
    for (int i = 0; i < n && negative; i++)
        x[i] = -x[i];
}

void co_eigen(double *a, int n, double *value, double *vector)
{
    memset(vector, 0, (size_t)n * (size_t)n * sizeof *vector);
    for (int i = 0; i < n; i++)
        vector[i * n + i] = 1;
    for (int i = 0; i < SWEEPS && sweep(a, vector, n); i++)
        continue;
    for (int i = 0; i < n; i++)
        value[i] = a[i * n + i];
    for (int i = 0; i < n; i++) { /* selection: the first of equal ones stays first */
        int top = i;
        for (int k = i + 1; k < n; k++)
            top = value[k] > value[top] ? k : top;
        swap_rows(&value[i], &value[top], 1);
        swap_rows(&vector[i * n], &vector[top * n], n);
        fix_sign(&vector[i * n], n);
    }
}
