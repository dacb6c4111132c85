/* Compares exp(-x) of many numbers with the C library's expl(). */
#include <float.h>
#include <math.h>
#include "ctest.h"
#include "linalg.h"
#include "strip.h"

/* Returns 1 if long double has more digits than double. Under valgrind it has not, and expl() may err by one unit. */
static int is_long(void)
{
    volatile long double x = 1.0L;
    return x + 0x1p-60L > x;
}

/* Returns the distance of neighbouring doubles at |x|. */
static long double unit(long double x)
{
    int exponent;
    frexpl(x, &exponent);
    return ldexpl(1.0L, (exponent > -1021 ? exponent : -1021) - DBL_MANT_DIG);
}

/* Returns the largest error, in units in the last place, for n numbers in blocks of different lengths. */
static double worst(int lanes, int n, double low, double high)
{
    double most = 0.0;
    for (int i = 0; i < n;) {
        const int block = 1 + i % 37;
        double *x = array_random((size_t)block + 8, low, high),
               *times = array((size_t)block + 8), *y = array((size_t)block + 8);
        fill((size_t)block + 8, 1.0, times);
        strip_finish(lanes, block, x, times, y);
        for (int j = 0; j < block; j++) {
            const long double exact = is_long() ? expl(-(long double)x[j]) : exp(-x[j]);
            most = fmax(most, (double)(fabsl((long double)y[j] - exact) / unit(exact)));
        }
        i += block;
    }
    return most;
}

static double one(int lanes, double x, double times)
{
    double xs[8] = {x}, all[8] = {times}, y[8];
    strip_finish(lanes, 1, xs, all, y);
    return y[0];
}

void group_vexp(void)
{
    static const double ends[] = {1e-300, 1e-18, 1e-9, 1e-3, 1.0, 20.0, 300.0, 707.9};
    const size_t taken = arrays_taken();
    const double most = is_long() ? 1.5 : 2.5;
    for (int lanes = 1; lanes <= 8; lanes *= 2) {
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            CHECK(worst(lanes, 5000, 0.0, ends[i]) <= most);
            arrays_release(taken);
        }
        CHECK(one(lanes, 0.0, 3.0) == 3.0 && one(lanes, -0.0, 3.0) == 3.0);
        CHECK(one(lanes, DBL_TRUE_MIN, 1.0) == 1.0);
        CHECK(one(lanes, 709.0, 1.0) == 0.0 && one(lanes, 1e308, 1.0) == 0.0);
        CHECK(one(lanes, INFINITY, INFINITY) == 0.0); /* not Inf * 0 */
        CHECK(isnan(one(lanes, NAN, 1.0)));
    }
}
