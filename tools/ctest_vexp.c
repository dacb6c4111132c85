/* Layer 1: the exponential of many numbers against the C library's in long double. */
#include <float.h>
#include <math.h>
#include "ctest.h"
#include "vexp.h"

/* long double may be double, and is under valgrind: then the yardstick itself may err by a unit */
static int is_long(void)
{
    volatile long double x = 1.0L;
    return x + 0x1p-60L > x;
}

/* the distance of two neighbours at |x| */
static long double unit(long double x)
{
    int exponent;
    frexpl(x, &exponent);
    return ldexpl(1.0L, (exponent > -1021 ? exponent : -1021) - DBL_MANT_DIG);
}

/* the largest error in units in the last place, of blocks of any length */
static double worst(int n, double low, double high)
{
    double most = 0.0;
    for (int i = 0; i < n;) {
        const int block = 1 + i % 37;
        double *x = array(block), *y = array(block);
        for (int j = 0; j < block; j++)
            x[j] = y[j] = uniform(low, high);
        exp_all(block, y);
        for (int j = 0; j < block; j++) {
            const long double exact = is_long() ? expl((long double)x[j]) : exp(x[j]);
            most = fmax(most, (double)(fabsl((long double)y[j] - exact) / unit(exact)));
        }
        i += block;
    }
    return most;
}

static double one(double x)
{
    double *y = array_copy(1, &x);
    exp_all(1, y);
    return y[0];
}

void group_vexp(void)
{
    static const double ends[] = {1e-300, 1e-18, 1e-9,  1e-3, 1.0,
                                  20.0,   300.0, 709.7, 745.2};
    const size_t taken = arrays_taken();
    const double most = is_long() ? 1.5 : 2.5;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        CHECK(worst(20000, -ends[i], 0.0) <= most);
        if (ends[i] < 709.8)
            CHECK(worst(20000, 0.0, ends[i]) <= most);
        arrays_release(taken);
    }
    CHECK(worst(20000, -745.2, -708.5) <= 1.0); /* denormal results: rounded once more */
    CHECK(one(0.0) == 1.0 && one(-0.0) == 1.0);
    CHECK(one(DBL_TRUE_MIN) == 1.0 && one(-DBL_MIN) == 1.0);
    CHECK(one(-745.1332) == DBL_TRUE_MIN && one(-745.14) == 0.0 && one(-1e308) == 0.0);
    CHECK(one(709.782712893384) > 1.797e308 && isfinite(one(709.782712893384)));
    CHECK(one(709.79) == INFINITY && one(1e308) == INFINITY);
    CHECK(one(INFINITY) == INFINITY && one(-INFINITY) == 0.0 && isnan(one(NAN)));
    exp_all(0, array(PLANTED)); /* nothing is nothing */
}
