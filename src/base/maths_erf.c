/* maths_erf.c -- the error function.
 *
 * Four polynomials of degree 10, one per unit of |x|, in the distance t from the middle of the piece:
 *
 *     0..1    erf(x) = x P(x^2), t = x^2 - 1/2     (odd; accurate down to the smallest x)
 *     1..4    erf(x) = P(|x|),   t = |x| - middle
 *     4..     1, correct to all bits of a float
 *
 * The coefficients interpolate erf(sqrt(z))/sqrt(z) and erf at the 11 Chebyshev nodes of each piece, solved
 * with 60 digits and rounded to double; the largest difference from erf is 1.3e-10, 0.002 ulp of a float.
 */
#include "base/maths.h"

#include <math.h>

enum { DEGREE = 10, PIECES = 4 };

/* rising powers of t */
static const double pieces[PIECES][DEGREE + 1] = {
    {0x1.ee51eb23cb7eap-1, -0x1.1fd1629215291p-2, 0x1.454368017b06fp-4, -0x1.2b902b7b011d0p-6,
     0x1.c82aa249c3223p-9, -0x1.26399238f32c3p-11, 0x1.4866390b67ce6p-14, -0x1.429d6d2b4329ep-17,
     0x1.1ad539dbf0e16p-20, -0x1.c1daa88f3ac1ap-24, 0x1.43f6d0dee7032p-27},
    {0x1.eea5557137ae0p-1, 0x1.e72371bd14d1cp-4, -0x1.6d5a95b7f564ep-3, 0x1.1c2a1e06674abp-3,
     -0x1.6d5ab4bae1a4bp-5, -0x1.e749bb4878441p-7, 0x1.3ca948a9b8a99p-6, -0x1.3417c2d931e68p-8,
     -0x1.37415c7fe9266p-9, 0x1.93ca74fa0c300p-10, -0x1.6d9372a51742ep-15},
    {0x1.ffcaa8f4c9beap-1, 0x1.1d8317cc3f505p-9, -0x1.64e3dd740eab2p-8, 0x1.119d9222fabacp-7,
     -0x1.1a89a06c4c872p-7, 0x1.90ea96e52291ap-8, -0x1.6ed686c067b52p-9, 0x1.1baf5b0bb1a18p-11,
     0x1.13d8126cd0c63p-12, -0x1.0155018f4f50ep-12, 0x1.2238d6c9bf542p-14},
    {0x1.ffffe710d565ep-1, 0x1.6a597cfd37521p-18, -0x1.3d0e3e043a821p-16, 0x1.62cc7bbecf6afp-15,
     -0x1.1c07e64779302p-14, 0x1.5870b98efc56cp-14, -0x1.460b23cbb1d9ap-14, 0x1.e7c495ea992cdp-15,
     -0x1.2019cac368d9dp-15, 0x1.04ce7f37c0634p-16, -0x1.212d34e624bdcp-18},
};

float co_erff(float xf)
{
    double x = xf, a = fabs(x);

    if (!(a < PIECES))
        return a != a ? xf : (float)copysign(1.0, x);
    int k = (int)a;
    double t = (k == 0 ? x * x : a) - ((double)k + 0.5), p = pieces[k][DEGREE];
    for (int i = DEGREE - 1; i >= 0; i--)
        p = p * t + pieces[k][i];
    return (float)(k == 0 ? x * p : copysign(p, x));
}
