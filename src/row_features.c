#include <math.h>
#include <stdint.h>
#include <stddef.h>
#include "row_features.h"

/* Hashes x one to one (splitmix64; Steele, Lea, Flood 2014). Each bit of x changes about half of the hash's bits. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Returns x, rounded to 40 binary digits, as one integer that is the same on every machine. */
static uint64_t digits_of(double x)
{
    int exponent = 0;
    const double fraction = frexp(x, &exponent); /* 0, or 1/2 <= |fraction| < 1 */
    double digits = nearbyint(ldexp(fraction, 40));
    if (fabs(digits) == ldexp(1.0, 40)) { /* rounded up to a power of two */
        digits /= 2.0;
        exponent++;
    }
    if (digits == 0.0)
        return 0;
    return (uint64_t)(int64_t)digits + ((uint64_t)(int64_t)exponent << 48);
}

void row_features(int N, int d, const double *X, int n_features, double *F)
{
    for (int j = 0; j < n_features; j++)
        for (int i = 0; i < N; i++) {
            uint64_t h = mix((uint64_t)j + UINT64_C(0x9E3779B97F4A7C15));
            for (int c = 0; c < d; c++) {
                h += UINT64_C(0x9E3779B97F4A7C15); /* because mix(0) = 0 */
                h = mix(h ^ digits_of(X[(size_t)c * N + i]));
            }
            F[(size_t)j * N + i] = ldexp((double)(h >> 11), -52) - 1.0;
        }
}
