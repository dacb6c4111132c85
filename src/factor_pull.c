#include <math.h>
#include "factor_pull.h"
#include "simd.h"

/* Adds to g the derivatives of sum_i w_i r2(x_i, z) in z, for four x_i: -2 sum_i w_i (x_i - z) / l^2. w has 2 w_i. */
static void pull_points(int M, double rate, const double *x, const double *restrict z,
                        const double *restrict w, double *restrict g)
{
    SIMD
    for (int m = 0; m < M; m++) {
        double wu[FACTOR_ROWS];
        EACH (i, FACTOR_ROWS)
            wu[i] = w[(size_t)i * M + m] * ((x[i] - z[m]) * rate);
        g[m] -= ((wu[0] + wu[1]) + (wu[2] + wu[3])) * rate;
    }
}

/* Returns sum_i,m (w u) u, from d r2 / d log l = -2 u^2 with u = (x - z) / l. With w = 0, (w u) u is 0, but w (u^2)
 * might be 0 times infinity. */
static double pull_lengthscale(int M, double rate, const double *x,
                               const double *restrict z, const double *restrict w)
{
    double sum = 0.0;
    SIMD_SUM
    for (int m = 0; m < M; m++) {
        double wuu[FACTOR_ROWS];
        EACH (i, FACTOR_ROWS) {
            const double u = (x[i] - z[m]) * rate;
            wuu[i] = w[(size_t)i * M + m] * u * u;
        }
        sum += (wuu[0] + wuu[1]) + (wuu[2] + wuu[3]);
    }
    return sum;
}

/* Returns the sum of pull_lengthscale() for a column with the numbers of levels. */
static double pull_levels_apart(int M, int n, double rate, const double *x,
                                const double *restrict z, const double *restrict w)
{
    const double u = LEVELS_APART * rate;
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        for (int m = 0; m < M; m++)
            sum += z[m] != x[i] ? w[(size_t)i * M + m] * u * u : 0.0;
    return sum;
}

static void pull_scaled(const struct factor *f, struct rows Z, struct rows X,
                        const double *w, double *dZ, double *dtheta)
{
    const int M = Z.n, n = X.n;
    for (int i = 0; i < n; i += FACTOR_ROWS, w += (size_t)FACTOR_ROWS * M) {
        const int rows = min_int(n - i, FACTOR_ROWS);
        for (int j = 0; j < f->d; j++) {
            /* below 1e-290 a lengthscale is 0 for the kernel, but u must not be infinite */
            const double *z = rows_column(Z, f->column[j]),
                         *xs = rows_column(X, f->column[j]) + i,
                         rate = fmin(factor_rate(f, j), 1e290);
            double x[FACTOR_ROWS], *slope = dtheta;
            if (slope != NULL)
                slope += f->at + (f->isotropic ? 0 : j);
            for (int a = 0; a < FACTOR_ROWS; a++) /* missing rows repeat the first */
                x[a] = xs[a < rows ? a : 0];
            if (dZ != NULL && rate > 0.0)
                pull_points(M, rate, x, z, w, dZ + (size_t)f->column[j] * M);
            if (slope != NULL)
                *slope -= rate < 0.0 ? pull_levels_apart(M, rows, rate, x, z, w)
                                     : pull_lengthscale(M, rate, x, z, w);
        }
    }
}

/*
 * r2 = (2 / l^2) sum_j (1 - cos b_j),  b = 2 pi (x - z) / period:
 *     d r2 / d z = -(4 pi / (period l^2)) sin b,   d r2 / d log period = -(2 / l^2) b sin b,
 *     d r2 / d log l = -2 r2
 */
static void pull_periodic(const struct factor *f, struct rows Z, struct rows X,
                          const double *w, double *dZ, double *dtheta)
{
    const double rate = fmin(factor_rate(f, 0), 1e145),
                 turn = 2.0 * PI / factor_period(f);
    const int M = Z.n, n = X.n;
    double c[FACTOR_ARC], s[FACTOR_ARC], of_period = 0.0, of_lengthscale = 0.0;
    for (int j = 0; j < f->d; j++)
        for (int first = 0; first < M; first += FACTOR_ARC) {
            const int some = min_int(M - first, FACTOR_ARC);
            const double *z = rows_column(Z, f->column[j]) + first;
            for (int m = 0; m < some; m++)
                factor_on_circle(z[m], factor_period(f), c + m, s + m);
            for (int i = 0; i < n; i++) {
                const double x = rows_column(X, f->column[j])[i];
                const double *restrict wi = w + (size_t)i * M + first;
                double cx, sx;
                factor_on_circle(x, factor_period(f), &cx, &sx);
                for (int m = 0; m < some; m++) {
                    const double sine = sx * c[m] - cx * s[m];
                    const double t = wi[m] * sine * rate * rate;
                    const double u = (cx - c[m]) * rate, v = (sx - s[m]) * rate;
                    if (dZ != NULL)
                        dZ[(size_t)f->column[j] * M + first + m] -= 2.0 * turn * t;
                    of_period -= 2.0 * t * turn * (x - z[m]);
                    of_lengthscale -= 2.0 * (wi[m] * u * u + wi[m] * v * v);
                }
            }
        }
    if (dtheta != NULL) {
        dtheta[f->at] += of_lengthscale;
        dtheta[f->at + 1] += of_period;
    }
}

/* Adds dF / dZ to dZ for METRIC_PRODUCT, and for METRIC_GROUP from pairs of rows with the same level. */
static void pull_inputs(const struct factor *f, struct rows Z, struct rows X,
                        const double *w, double *dZ)
{
    const int group = f->profile->metric == METRIC_GROUP;
    const double *z = rows_column(Z, f->column[0]), *x = rows_column(X, f->column[0]);
    for (int j = group; j < f->d && dZ != NULL; j++)
        for (int i = 0; i < X.n; i++) {
            const double slope = factor_input_slope(f, j, rows_from(X, i, 1)),
                         *restrict wi = w + (size_t)i * Z.n;
            double *restrict g = dZ + (size_t)f->column[j] * Z.n;
            for (int m = 0; m < Z.n; m++)
                if (!group || x[i] == z[m])
                    g[m] += wi[m] * slope;
        }
}

void factor_pull(const struct factor *f, struct rows Z, struct rows X, double *S_bar,
                 double *dZ, double *dtheta)
{
    const int M = Z.n, more = (FACTOR_ROWS - X.n % FACTOR_ROWS) % FACTOR_ROWS;
    const size_t size = (size_t)M * X.n;
    if (f->profile->metric == METRIC_PERIODIC)
        pull_periodic(f, Z, X, S_bar, dZ, dtheta);
    if (f->profile->metric == METRIC_PRODUCT || f->profile->metric == METRIC_GROUP)
        pull_inputs(f, Z, X, S_bar, dZ);
    if (f->profile->metric == METRIC_SCALED) {
        for (size_t i = 0; i < size; i++)
            S_bar[i] *= 2.0;
        for (size_t i = size; i < size + (size_t)more * M; i++)
            S_bar[i] = 0.0;
        pull_scaled(f, Z, X, S_bar, dZ, dtheta);
    }
}
