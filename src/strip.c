#include <string.h>
#include "exp_series.h"
#include "simd.h"
#include "strip.h"
#include "vectors.h"

#define PAGE "strip_tile.h"
#include "kinds.h"

struct kind {
    int lanes;
    void (*values)(const struct strip_kernel *k, int M, const double *const *z,
                   const double *x, double *const *K);
    void (*sums)(int M, const double *const *k, const double *p, double *sums);
    void (*spread)(int M, const double *const *k, const double *x, double *out);
    void (*finish)(int n, const double *exponent, const double *times, double *out);
};

#define KIND(lanes, vector)                                                              \
    {                                                                                    \
        LANES_OF(vector), values_##lanes, sums_##lanes, spread_##lanes, finish_##lanes   \
    }
static const struct kind kinds[N_KINDS] = KINDS(KIND);

/* ---- kernel values of all rows of Z with STRIP_ROWS rows of X ------------------------------- */

/* Copies the inputs of rows i, ..., i + 3 of X side by side to x. Rows beyond the last one repeat it. */
static void rows_side_by_side(const struct strip_kernel *k, int i, struct rows X,
                              double *x)
{
    for (int j = 0; j < k->d; j++)
        for (int r = 0; r < STRIP_ROWS; r++)
            x[STRIP_ROWS * j + r] =
                rows_column(X, k->column[j])[i + r < X.n ? i + r : X.n - 1];
}

void strip_values(int lanes, const struct strip_kernel *k, struct rows Z, struct rows X,
                  double *K)
{
    const struct kind kind = kinds[widest_kind(lanes)];
    const int M = Z.n, n = X.n, whole = M - M % kind.lanes, rest = M - whole;
    double last[STRIP_MOST_INPUTS * MOST_LANES], x[STRIP_MOST_INPUTS * STRIP_ROWS],
        some[STRIP_ROWS][MOST_LANES],
        *to[STRIP_ROWS],
            *const to_some[STRIP_ROWS] = {some[0], some[1], some[2], some[3]};
    const double *z[STRIP_MOST_INPUTS], *z_last[STRIP_MOST_INPUTS];
    for (int j = 0; j < k->d; j++) { /* fills up the last vector of rows of Z */
        z[j] = rows_column(Z, k->column[j]);
        z_last[j] = last + MOST_LANES * j;
        for (int l = 0; l < kind.lanes && rest > 0; l++)
            last[MOST_LANES * j + l] = z[j][l < rest ? whole + l : M - 1];
    }
    for (int i = 0; i < n; i += STRIP_ROWS) {
        rows_side_by_side(k, i, X, x);
        for (int r = 0; r < STRIP_ROWS; r++)
            to[r] = K + (size_t)(i + r < n ? i + r : n - 1) * M;
        kind.values(k, whole, z, x, to);
        if (rest == 0)
            continue;
        kind.values(k, kind.lanes, z_last, x, to_some);
        for (int r = 0; r < STRIP_ROWS && i + r < n; r++)
            memcpy(to[r] + whole, some[r], sizeof(double) * (size_t)rest);
    }
}

/* ---- products of kernel values of STRIP_ROWS rows with vectors ------------------------------ */

void strip_products(int lanes, int M, int n, const double *K, int m, int ldp,
                    const double *p_z, const double *p_x, double *out_z, double *out_x)
{
    const struct kind kind = kinds[widest_kind(lanes)];
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
        memcpy(x, p_x + at, sizeof(double) * (size_t)n); /* x is 0 for missing rows */
        kind.spread(whole, k, x, out_z + at);
        for (int r = 0; r < n; r++)
            for (int i = whole; i < M; i++)
                out_z[at + i] += k[r][i] * x[r];
    }
}

void strip_finish(int lanes, int n, const double *exponent, const double *times,
                  double *out)
{
    const struct kind kind = kinds[widest_kind(lanes)];
    kind.finish((n + kind.lanes - 1) / kind.lanes * kind.lanes, exponent, times, out);
}
