#include <math.h>
#include <string.h>
#include "exp_series.h"
#include "simd.h"
#include "strip.h"
#include "vectors.h"

/* ---- for each kind of vector ---------------------------------------------------------------- */

INSIDE double shifted_up(double x, int places)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits <<= places;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define NAME(verb) verb##_1
#define TARGET
#define VECTOR          double
#define ROOT(v)         sqrt(v)
#define SHIFT(v, n)     shifted_up(v, n)
#define UNLESS(v, a, b) ((a) >= (b) ? 0.0 : (v))
#include "strip_tile.h"

#define SHIFT_BITS(v, n)     ((VECTOR)((BITS)(v) << (n)))
#define UNLESS_BITS(v, a, b) ((VECTOR)((BITS)(v) & ~(BITS)((a) >= (b))))

#ifdef TWO_LANES
INSIDE two root_of_two(two v)
{
    return (two){sqrt(v[0]), sqrt(v[1])};
}
#define NAME(verb) verb##_2
#define TARGET
#define VECTOR two
#define BITS   bits_of_two
#define ROOT   root_of_two
#define SHIFT  SHIFT_BITS
#define UNLESS UNLESS_BITS
#include "strip_tile.h"
#endif

#ifdef FOUR_LANES
#include <immintrin.h>
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
#include "strip_tile.h"
#endif

#ifdef EIGHT_LANES
#define NAME(verb) verb##_8
#define TARGET     FOR_EIGHT_LANES
#define VECTOR     eight
#define BITS       bits_of_eight
#define ROOT(v)    ((eight)_mm512_sqrt_pd((__m512d)(v)))
#define SHIFT      SHIFT_BITS
#define UNLESS     UNLESS_BITS
#include "strip_tile.h"
#endif

enum { MOST_LANES = 8 };

struct kind {
    int lanes;
    void (*values)(const struct strip_kernel *k, int M, const double *const *z,
                   const double *x, double *k0, double *k1, double *k2, double *k3);
    void (*sums)(int M, const double *const *k, const double *p, double *sums);
    void (*spread)(int M, const double *const *k, const double *x, double *out);
};

static struct kind kind_of(int lanes)
{
#ifdef EIGHT_LANES
    if (lanes >= 8 && __builtin_cpu_supports("avx512f"))
        return (struct kind){LANES_OF(eight), values_8, sums_8, spread_8};
#endif
#ifdef FOUR_LANES
    if (lanes >= 4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct kind){LANES_OF(four), values_4, sums_4, spread_4};
#endif
#ifdef TWO_LANES
    if (lanes >= 2)
        return (struct kind){LANES_OF(two), values_2, sums_2, spread_2};
#endif
    (void)lanes;
    return (struct kind){1, values_1, sums_1, spread_1};
}

/* ---- values --------------------------------------------------------------------------------- */

/* rows i, ..., i + 3 of X side by side; the last one stands in for those beyond n */
static void rows_side_by_side(const struct strip_kernel *k, int i, int n, const double *X,
                              int ldx, double *x)
{
    for (int j = 0; j < k->d; j++)
        for (int r = 0; r < STRIP_ROWS; r++)
            x[STRIP_ROWS * j + r] =
                X[(size_t)k->column[j] * ldx + (i + r < n ? i + r : n - 1)];
}

void strip_values(int lanes, const struct strip_kernel *k, int M, const double *Z,
                  int ldz, int n, const double *X, int ldx, double *K)
{
    const struct kind kind = kind_of(lanes);
    const int whole = M - M % kind.lanes, rest = M - whole;
    double last[STRIP_MOST_INPUTS * MOST_LANES], x[STRIP_MOST_INPUTS * STRIP_ROWS],
        some[STRIP_ROWS * MOST_LANES], *to[STRIP_ROWS];
    const double *z[STRIP_MOST_INPUTS], *z_last[STRIP_MOST_INPUTS];
    for (int j = 0; j < k->d; j++) { /* rows beyond a multiple of the lanes: filled up */
        z[j] = Z + (size_t)k->column[j] * ldz;
        z_last[j] = last + MOST_LANES * j;
        for (int l = 0; l < kind.lanes && rest > 0; l++)
            last[MOST_LANES * j + l] = z[j][l < rest ? whole + l : M - 1];
    }
    for (int i = 0; i < n; i += STRIP_ROWS) {
        rows_side_by_side(k, i, n, X, ldx, x);
        for (int r = 0; r < STRIP_ROWS; r++)
            to[r] = K + (size_t)(i + r < n ? i + r : n - 1) * M;
        kind.values(k, whole, z, x, to[0], to[1], to[2], to[3]);
        if (rest == 0)
            continue;
        kind.values(k, kind.lanes, z_last, x, some, some + MOST_LANES,
                    some + 2 * MOST_LANES, some + 3 * MOST_LANES);
        for (int r = 0; r < STRIP_ROWS && i + r < n; r++)
            memcpy(to[r] + whole, some + MOST_LANES * r, sizeof(double) * (size_t)rest);
    }
}

/* ---- products ------------------------------------------------------------------------------- */

void strip_products(int lanes, int M, int n, const double *K, int m, int ldp,
                    const double *p_z, const double *p_x, double *out_z, double *out_x)
{
    const struct kind kind = kind_of(lanes);
    const int whole = M - M % kind.lanes;
    const double *k[STRIP_ROWS];
    for (int r = 0; r < STRIP_ROWS; r++)
        k[r] = K + (size_t)(r < n ? r : n - 1) * M;
    for (int v = 0; v < m; v++) {
        const size_t at = (size_t)v * ldp;
        double x[STRIP_ROWS] = {0.0}, sums[STRIP_ROWS];
        kind.sums(whole, k, p_z + at, sums);
        for (int r = 0; r < n; r++) {
            for (int i = whole; i < M; i++)
                sums[r] += k[r][i] * p_z[at + i];
            out_x[at + r] += sums[r];
        }
        if (p_x == NULL)
            continue;
        memcpy(x, p_x + at, sizeof(double) * (size_t)n); /* beyond them: times 0 */
        kind.spread(whole, k, x, out_z + at);
        for (int r = 0; r < n; r++)
            for (int i = whole; i < M; i++)
                out_z[at + i] += k[r][i] * x[r];
    }
}
