/* Includes the file PAGE once for each kind of vector, like a template.  simd.h and vectors.h must be included before.
 * Afterwards KINDS(entry) lists the kinds as entry(1, double), entry(2, two), ...; a narrower kind replaces a kind
 * that the compiler lacks.  This file includes itself for each kind, with these macros for PAGE:
 *   KIND            number of doubles in a vector: 1, 2, 4 or 8
 *   NAME(verb)      name of a routine for this kind
 *   TARGET          attribute that compiles a function for processors with such vectors
 *   VECTOR, BITS    vector of doubles, and vector of as many integers
 *   ROOT(v)         square roots
 *   SHIFT(v, n)     bits of v shifted left by n places, as doubles
 *   UNLESS(v, a, b) 0 where a >= b, else v
 * PAGE may call NAME(total) and, if exp_series.h is included before, NAME(value) and NAME(levels). */
#ifdef NAME

/* Returns the sum of the elements of v. */
TARGET INSIDE double NAME(total)(VECTOR v)
{
    const double *lane = (const double *)&v;
    double sum = lane[0];
    for (int l = 1; l < LANES_OF(VECTOR); l++)
        sum += lane[l];
    return sum;
}

#ifdef EXP_Q
/* Returns times * exp(-a), or 0 if a >= 708, where exp(-a) is hardly above the smallest normal double. */
TARGET INSIDE VECTOR NAME(value)(VECTOR a, VECTOR times)
{
    const VECTOR k = (TO_INTEGER - a * LOG2_E) - TO_INTEGER;
    const VECTOR r = (-a - k * LOG_2_HIGH) - k * LOG_2_LOW;
    const VECTOR value = (1.0 + (r + r * r * EXP_Q(r))) * times;
    return UNLESS(value * SHIFT(k + (TO_INTEGER + 1023.0), 52), a, 708.0);
}

/* Returns the scaled difference of two levels: LEVELS_APART * rate if their numbers differ, 0 if `apart` is 0. */
TARGET INSIDE VECTOR NAME(levels)(VECTOR apart, double rate)
{
    const VECTOR none = {0};
    return UNLESS(none + LEVELS_APART * rate, -(apart * apart), 0.0);
}
#endif

#include PAGE

#undef KIND
#undef NAME
#undef TARGET
#undef VECTOR
#undef BITS
#undef ROOT
#undef SHIFT
#undef UNLESS

#else
#include <math.h>
#include <string.h>

INSIDE double shifted_up(double x, int places)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits <<= places;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define KIND       1
#define NAME(verb) verb##_1
#define TARGET
#define VECTOR          double
#define ROOT(v)         sqrt(v)
#define SHIFT(v, n)     shifted_up(v, n)
#define UNLESS(v, a, b) ((a) >= (b) ? 0.0 : (v))
#include "kinds.h"

#define SHIFT_BITS(v, n)     ((VECTOR)((BITS)(v) << (n)))
#define UNLESS_BITS(v, a, b) ((VECTOR)((BITS)(v) & ~(BITS)((a) >= (b))))

#ifdef TWO_LANES
INSIDE two root_of_two(two v)
{
    return (two){sqrt(v[0]), sqrt(v[1])};
}
#define KIND       2
#define NAME(verb) verb##_2
#define TARGET
#define VECTOR two
#define BITS   bits_of_two
#define ROOT   root_of_two
#define SHIFT  SHIFT_BITS
#define UNLESS UNLESS_BITS
#include "kinds.h"
#define KIND_2(entry) entry(2, two)
#else
#define KIND_2(entry) entry(1, double)
#endif

#ifdef FOUR_LANES
#include <immintrin.h>
#define KIND       4
#define NAME(verb) verb##_4
#define TARGET     FOR_FOUR_LANES
#define VECTOR     four
#define BITS       bits_of_four
#ifdef _WIN32
#define ROOT root_of_two
#else
#define ROOT(v) ((four)_mm256_sqrt_pd((__m256d)(v)))
#endif
#define SHIFT  SHIFT_BITS
#define UNLESS UNLESS_BITS
#include "kinds.h"
#define KIND_4(entry) entry(4, four)
#else
#define KIND_4(entry) KIND_2(entry)
#endif

#ifdef EIGHT_LANES
#define KIND       8
#define NAME(verb) verb##_8
#define TARGET     FOR_EIGHT_LANES
#define VECTOR     eight
#define BITS       bits_of_eight
#define ROOT(v)    ((eight)_mm512_sqrt_pd((__m512d)(v)))
#define SHIFT      SHIFT_BITS
#define UNLESS     UNLESS_BITS
#include "kinds.h"
#define KIND_8(entry) entry(8, eight)
#else
#define KIND_8(entry) KIND_4(entry)
#endif

enum { MOST_LANES = 8, N_KINDS = 4 };
#define KINDS(entry)                                                                     \
    {                                                                                    \
        entry(1, double), KIND_2(entry), KIND_4(entry), KIND_8(entry)                    \
    }

/* Returns the place in the list KINDS of the processor's widest kind of vectors of at most `lanes` doubles. */
INSIDE int widest_kind(int lanes)
{
#ifdef EIGHT_LANES
    if (lanes >= 8 && __builtin_cpu_supports("avx512f"))
        return 3;
#endif
#ifdef FOUR_LANES
    if (lanes >= 4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 2;
#endif
    return lanes >= 2;
}

#endif
