#include <math.h>
#include <stdint.h>
#include <string.h>
#include "simd.h"
#include "vexp.h"

#define TO_INTEGER                                                                       \
    0x1.8p52 /* added: the last digits of what comes of it are an integer's */

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

/* q is exp's to a relative 1.6e-17; log 2 in two parts, k times the first of them exact */
INSIDE double exp_one(double any)
{
    const double size = fabs(any), x = copysign(size > 746.0 ? 746.0 : size, any);
    const double k = (x * 0x1.71547652b82fep0 + TO_INTEGER) - TO_INTEGER;
    const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
    double q = 0x1.af38a9b0ec855p-26;
    q = 0x1.289185613a3d6p-22 + r * q;
    q = 0x1.71de0dae63bb3p-19 + r * q;
    q = 0x1.a019b90d2ae7ap-16 + r * q;
    q = 0x1.a01a01a7c41d5p-13 + r * q;
    q = 0x1.6c16c1788bd90p-10 + r * q;
    q = 0x1.11111111109b3p-7 + r * q;
    q = 0x1.5555555553d63p-5 + r * q;
    q = 0x1.5555555555556p-3 + r * q;
    q = 0x1.0000000000001p-1 + r * q;
    const double half = (0.5 * k + TO_INTEGER) - TO_INTEGER; /* 2^k itself may be none */
    return (1.0 + (r + r * r * q)) * power_of_two(half) * power_of_two(k - half);
}

CLONES void exp_all(int n, double *x)
{
    SIMD
    for (int i = 0; i < n; i++)
        x[i] = exp_one(x[i]);
}
