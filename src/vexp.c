#include <math.h>
#include <stdint.h>
#include <string.h>
#include "exp_series.h"
#include "simd.h"
#include "vexp.h"

/* 2^k, k an integer, |k| < 1023 */
INSIDE double power_of_two(double k)
{
    double power;
    uint64_t bits;
    power = k + (TO_INTEGER + 1023.0);
    memcpy(&bits, &power, sizeof bits);
    bits <<= 52;
    memcpy(&power, &bits, sizeof power);
    return power;
}

INSIDE double exp_one(double any)
{
    const double size = fabs(any), x = copysign(size > 746.0 ? 746.0 : size, any);
    const double k = (x * LOG2_E + TO_INTEGER) - TO_INTEGER;
    const double r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW;
    const double half = (0.5 * k + TO_INTEGER) - TO_INTEGER; /* 2^k itself may be none */
    return (1.0 + (r + r * r * EXP_Q(r))) * power_of_two(half) * power_of_two(k - half);
}

CLONES void exp_all(int n, double *x)
{
    SIMD
    for (int i = 0; i < n; i++)
        x[i] = exp_one(x[i]);
}
