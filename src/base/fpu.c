/* fpu.c -- the rounding state of this thread. A library built with fast maths may have changed it. */
#include "base/maths.h"

#include <fenv.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

void co_fpu_init(void)
{
    fesetround(FE_TONEAREST);
#ifdef __SSE2__
    _mm_setcsr(0x1f80); /* exceptions masked, round to nearest, no flush-to-zero, no denormals-are-zero */
#endif
}
