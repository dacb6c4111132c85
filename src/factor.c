#include <float.h>
#include <math.h>
#include "factor.h"
#include "simd.h"

static const double pi = 3.14159265358979323846;

int factor_is_stationary(const struct factor *f)
{
    return f->profile->metric == METRIC_SCALED || f->profile->metric == METRIC_PERIODIC;
}

int factor_is_constant(const struct factor *f)
{
    return f->profile->metric != METRIC_PRODUCT &&
           (f->profile->metric != METRIC_GROUP || (f->d == 1 && f->power == 1));
}

int factor_has_levels(const struct factor *f)
{
    return f->profile->metric == METRIC_LEVELS || f->profile->metric == METRIC_GROUP;
}

int factor_table_rows(const struct factor *f)
{
    return f->profile->metric == METRIC_GROUP ? f->d - 1 + f->power : f->d;
}

struct factor factor_table_slope(const struct factor *f, int parameter)
{
    struct factor other = *f;
    const size_t rows = (size_t)factor_table_rows(f);
    other.table = f->table + (size_t)(parameter + 1) * rows * rows;
    return other;
}

int factor_is_mean(const struct factor *f)
{
    return f->profile->metric == METRIC_PRODUCT && f->table != NULL;
}

/* input j of METRIC_PRODUCT in its own units */
static double product_input(const struct factor *f, int j, double x)
{
    return f->table == NULL ? x : (x - f->table[j]) * f->table[f->d + j];
}

double factor_product_slope(const struct factor *f, int j, double x)
{
    return product_input(f, j, x) * (f->table == NULL ? 1.0 : f->table[f->d + j]);
}

int factor_n_metric(const struct factor *f)
{
    switch (f->profile->metric) {
    case METRIC_SCALED:
        return f->isotropic ? 1 : f->d;
    case METRIC_PERIODIC:
        return 2;
    default:
        return 0;
    }
}

const double *factor_shape(const struct factor *f)
{
    return f->parameter + factor_n_metric(f);
}

/* of lengthscales below 6e-309 a difference of 0 is still 0, any other infinite */
double factor_rate(const struct factor *f, int j)
{
    const int single = f->isotropic || f->profile->metric == METRIC_PERIODIC;
    return fmin(1.0 / f->parameter[single ? 0 : j], DBL_MAX);
}

static double period_of(const struct factor *f)
{
    return f->parameter[1];
}

/* ---- statistics ------------------------------------------------------------------------ */

CLONES static void squared_distances(const struct factor *f, int M, const double *Z,
                                     int ldz, const double *x, int ldx,
                                     double *restrict r2)
{
    for (int m = 0; m < M; m++)
        r2[m] = 0.0;
    for (int j = 0; j < f->d; j++) {
        const double *restrict z = Z + (size_t)f->column[j] * ldz;
        const double xj = x[(size_t)f->column[j] * ldx], rate = factor_rate(f, j);
        SIMD
        for (int m = 0; m < M; m++) {
            const double u = (xj - z[m]) * rate;
            r2[m] += u * u;
        }
    }
}

/* the place of x on a circle of that circumference */
static void on_circle(double x, double period, double *c, double *s)
{
    const double angle = 2.0 * pi * (remainder(x, period) / period); /* exact */
    *c = cos(angle);
    *s = sin(angle);
}

enum { ARC = 64 };

/* 4 sin^2((a - b) / 2) = |exp(ia) - exp(ib)|^2 */
static void squared_chords(const struct factor *f, int M, const double *Z, int ldz, int n,
                           const double *X, int ldx, double *restrict S)
{
    const double rate = factor_rate(f, 0), period = period_of(f);
    double c[ARC], s[ARC];
    for (size_t i = 0; i < (size_t)M * n; i++)
        S[i] = 0.0;
    for (int j = 0; j < f->d; j++)
        for (int first = 0; first < M; first += ARC) {
            const int some = M - first < ARC ? M - first : ARC;
            const double *z = Z + (size_t)f->column[j] * ldz + first;
            for (int m = 0; m < some; m++)
                on_circle(z[m], period, c + m, s + m);
            for (int i = 0; i < n; i++) {
                double *restrict out = S + (size_t)i * M + first, cx, sx;
                on_circle(X[(size_t)f->column[j] * ldx + i], period, &cx, &sx);
                SIMD
                for (int m = 0; m < some; m++) {
                    const double u = (cx - c[m]) * rate, v = (sx - s[m]) * rate;
                    out[m] += u * u + v * v;
                }
            }
        }
}

static void products(const struct factor *f, int M, const double *Z, int ldz,
                     const double *x, int ldx, double *restrict s)
{
    for (int m = 0; m < M; m++)
        s[m] = 0.0;
    for (int j = 0; j < f->d; j++) {
        const double *restrict z = Z + (size_t)f->column[j] * ldz;
        const double xj = product_input(f, j, x[(size_t)f->column[j] * ldx]);
        const double centre = f->table == NULL ? 0.0 : f->table[j],
                     rate = f->table == NULL ? 1.0 : f->table[f->d + j];
        SIMD
        for (int m = 0; m < M; m++)
            s[m] += xj * ((z[m] - centre) * rate);
    }
}

static void equalities(const struct factor *f, int M, const double *Z, int ldz,
                       const double *x, int ldx, double *restrict s)
{
    for (int m = 0; m < M; m++)
        s[m] = 1.0;
    for (int j = 0; j < f->d; j++) {
        const double *restrict z = Z + (size_t)f->column[j] * ldz;
        const double xj = x[(size_t)f->column[j] * ldx];
        for (int m = 0; m < M; m++)
            s[m] = xj == z[m] ? s[m] : 0.0;
    }
}

void factor_levels(const struct factor *f, int n, const double *X, int ldx, int *level)
{
    for (int i = 0; i < n; i++)
        level[i] = -1;
    for (int j = 0; j < f->d; j++) {
        const double *x = X + (size_t)f->column[j] * ldx;
        for (int i = 0; i < n; i++)
            if (x[i] > 0.5)
                level[i] = j;
    }
}

/* no level has nothing to do with any other row */
static void correlations(const struct factor *f, int M, const double *Z, int ldz, int n,
                         const double *X, int ldx, double *S)
{
    int of_z[ARC], of_x[ARC];
    for (int first = 0; first < M; first += ARC) {
        const int some = M - first < ARC ? M - first : ARC;
        factor_levels(f, some, Z + first, ldz, of_z);
        for (int from = 0; from < n; from += ARC) {
            const int rows = n - from < ARC ? n - from : ARC;
            factor_levels(f, rows, X + from, ldx, of_x);
            for (int i = 0; i < rows; i++) {
                double *out = S + (size_t)(from + i) * M + first;
                for (int m = 0; m < some; m++)
                    out[m] = of_x[i] < 0 || of_z[m] < 0
                                 ? 0.0
                                 : f->table[(size_t)of_x[i] * f->d + of_z[m]];
            }
        }
    }
}

/* element i of the design of a row */
static double effect_of(const struct factor *f, int i, const double *x, int ldx)
{
    return i < f->power ? 1.0 : x[(size_t)f->column[i - f->power + 1] * ldx];
}

double factor_group_slope(const struct factor *f, int j, const double *x, int ldx)
{
    const int p = factor_table_rows(f);
    const double *row = f->table + (size_t)(j - 1 + f->power) * p;
    double sum = 0.0;
    for (int a = 0; a < p; a++)
        sum += row[a] * effect_of(f, a, x, ldx);
    return sum;
}

double factor_group_curvature(const struct factor *f, int j)
{
    return f->table[(size_t)(j - 1 + f->power) * (factor_table_rows(f) + 1)];
}

/* u(x)' S u(z) */
static double effects_product(const struct factor *f, const double *x, int ldx,
                              const double *z, int ldz)
{
    const int p = factor_table_rows(f);
    double sum = 0.0;
    for (int b = 0; b < p; b++) {
        const double xb = effect_of(f, b, x, ldx), zb = effect_of(f, b, z, ldz);
        const double *row = f->table + (size_t)b * p;
        for (int a = 0; a < b; a++) /* the same bits with x and z in either order */
            sum += row[a] * (effect_of(f, a, x, ldx) * zb + xb * effect_of(f, a, z, ldz));
        sum += row[b] * (xb * zb);
    }
    return sum;
}

static void group_effects(const struct factor *f, int M, const double *Z, int ldz,
                          const double *x, int ldx, double *restrict s)
{
    const double *level = Z + (size_t)f->column[0] * ldz;
    const double own = x[(size_t)f->column[0] * ldx];
    for (int m = 0; m < M; m++)
        s[m] = level[m] == own ? effects_product(f, x, ldx, Z + m, ldz) : 0.0;
}

void factor_statistic(const struct factor *f, int M, const double *Z, int ldz, int n,
                      const double *X, int ldx, double *S)
{
    const enum metric metric = f->profile->metric;
    if (metric == METRIC_PERIODIC)
        squared_chords(f, M, Z, ldz, n, X, ldx, S);
    if (metric == METRIC_LEVELS)
        correlations(f, M, Z, ldz, n, X, ldx, S);
    for (int i = 0; i < n; i++) {
        double *s = S + (size_t)i * M;
        if (metric == METRIC_SCALED)
            squared_distances(f, M, Z, ldz, X + i, ldx, s);
        if (metric == METRIC_PRODUCT)
            products(f, M, Z, ldz, X + i, ldx, s);
        if (metric == METRIC_GROUP)
            group_effects(f, M, Z, ldz, X + i, ldx, s);
        if (metric == METRIC_EQUALITY)
            equalities(f, M, Z, ldz, X + i, ldx, s);
        for (int m = 0; m < M && metric == METRIC_NOTHING; m++)
            s[m] = 1.0;
    }
}

void factor_self_statistic(const struct factor *f, int n, const double *X, int ldx,
                           double *s)
{
    const int product = f->profile->metric == METRIC_PRODUCT;
    for (int i = 0; i < n; i++)
        s[i] = f->profile->metric == METRIC_GROUP
                   ? effects_product(f, X + i, ldx, X + i, ldx)
               : factor_is_stationary(f) || product ? 0.0
                                                    : 1.0;
    for (int j = 0; j < f->d && product; j++) {
        const double *x = X + (size_t)f->column[j] * ldx;
        for (int i = 0; i < n; i++) {
            const double u = product_input(f, j, x[i]);
            s[i] += u * u;
        }
    }
}

int factor_split(const struct factor *f, size_t n, double *S, double *exponent,
                 double *times)
{
    if (factor_is_stationary(f)) {
        f->profile->split((int)n, factor_shape(f), S, exponent, times);
        return 1;
    }
    if (f->profile->value != NULL)
        f->profile->value((int)n, f->power, factor_shape(f), S);
    for (size_t i = 0; i < n; i++)
        times[i] *= S[i];
    return 0;
}

/* ---- adjoints of the statistics -------------------------------------------------------- */

/* g -= 2 sum_i w_i u_i / l,  u = (x - z) / l:  d r2 / d z = -2 u / l; w doubled already */
static void pull_points(int M, double rate, const double *x, const double *restrict z,
                        const double *restrict w, double *restrict g)
{
    const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const double *restrict w0 = w, *restrict w1 = w0 + M, *restrict w2 = w1 + M,
                           *restrict w3 = w2 + M;
    SIMD
    for (int m = 0; m < M; m++) {
        const double u0 = (x0 - z[m]) * rate, u1 = (x1 - z[m]) * rate;
        const double u2 = (x2 - z[m]) * rate, u3 = (x3 - z[m]) * rate;
        g[m] -= ((w0[m] * u0 + w1[m] * u1) + (w2[m] * u2 + w3[m] * u3)) * rate;
    }
}

/* sum_i,m (w u) u:  d r2 / d log l = -2 u^2; in this order no square overflows beside w = 0 */
static double pull_lengthscale(int M, double rate, const double *x,
                               const double *restrict z, const double *restrict w)
{
    const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const double *restrict w0 = w, *restrict w1 = w0 + M, *restrict w2 = w1 + M,
                           *restrict w3 = w2 + M;
    double sum = 0.0;
    SIMD_SUM
    for (int m = 0; m < M; m++) {
        const double u0 = (x0 - z[m]) * rate, u1 = (x1 - z[m]) * rate;
        const double u2 = (x2 - z[m]) * rate, u3 = (x3 - z[m]) * rate;
        sum += (w0[m] * u0 * u0 + w1[m] * u1 * u1) + (w2[m] * u2 * u2 + w3[m] * u3 * u3);
    }
    return sum;
}

static void pull_scaled(const struct factor *f, int M, const double *Z, int ldz, int n,
                        const double *X, int ldx, const double *w, double *dZ,
                        double *dtheta)
{
    for (int i = 0; i < n; i += FACTOR_ROWS, w += (size_t)FACTOR_ROWS * M) {
        const int rows = n - i < FACTOR_ROWS ? n - i : FACTOR_ROWS;
        for (int j = 0; j < f->d; j++) {
            const size_t column = (size_t)f->column[j];
            /* below 1e-290 a lengthscale is 0 for the kernel, but u must not be infinite */
            const double *z = Z + column * ldz, rate = fmin(factor_rate(f, j), 1e290);
            double x[FACTOR_ROWS];
            for (int a = 0; a < FACTOR_ROWS; a++) /* a missing row repeats one */
                x[a] = X[i + (a < rows ? a : 0) + column * ldx];
            if (dZ != NULL)
                pull_points(M, rate, x, z, w, dZ + column * M);
            if (dtheta != NULL)
                dtheta[f->at + (f->isotropic ? 0 : j)] -=
                    pull_lengthscale(M, rate, x, z, w);
        }
    }
}

/*
 * r2 = (2 / l^2) sum_j (1 - cos b_j),  b = 2 pi (x - z) / period:
 *     d r2 / d z = -(4 pi / (period l^2)) sin b,   d r2 / d log period = -(2 / l^2) b sin b,
 *     d r2 / d log l = -2 r2
 */
static void pull_periodic(const struct factor *f, int M, const double *Z, int ldz, int n,
                          const double *X, int ldx, const double *w, double *dZ,
                          double *dtheta)
{
    const double rate = fmin(factor_rate(f, 0), 1e145), turn = 2.0 * pi / period_of(f);
    double c[ARC], s[ARC], of_period = 0.0, of_lengthscale = 0.0;
    for (int j = 0; j < f->d; j++)
        for (int first = 0; first < M; first += ARC) {
            const int some = M - first < ARC ? M - first : ARC;
            const double *z = Z + (size_t)f->column[j] * ldz + first;
            for (int m = 0; m < some; m++)
                on_circle(z[m], period_of(f), c + m, s + m);
            for (int i = 0; i < n; i++) {
                const double x = X[(size_t)f->column[j] * ldx + i];
                const double *restrict wi = w + (size_t)i * M + first;
                double cx, sx;
                on_circle(x, period_of(f), &cx, &sx);
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

static void pull_product(const struct factor *f, int M, int n, const double *X, int ldx,
                         const double *w, double *dZ)
{
    for (int j = 0; j < f->d && dZ != NULL; j++)
        for (int i = 0; i < n; i++) {
            const double x =
                factor_product_slope(f, j, X[(size_t)f->column[j] * ldx + i]);
            const double *restrict wi = w + (size_t)i * M;
            double *restrict g = dZ + (size_t)f->column[j] * M;
            SIMD
            for (int m = 0; m < M; m++)
                g[m] += wi[m] * x;
        }
}

static void pull_group(const struct factor *f, int M, const double *Z, int ldz, int n,
                       const double *X, int ldx, const double *w, double *dZ)
{
    const size_t level = (size_t)f->column[0];
    for (int j = 1; j < f->d && dZ != NULL; j++)
        for (int i = 0; i < n; i++) {
            const double slope = factor_group_slope(f, j, X + i, ldx);
            double *g = dZ + (size_t)f->column[j] * M;
            for (int m = 0; m < M; m++)
                if (X[level * ldx + i] == Z[level * ldz + m])
                    g[m] += w[(size_t)i * M + m] * slope;
        }
}

void factor_pull(const struct factor *f, int M, const double *Z, int ldz, int n,
                 const double *X, int ldx, double *S_bar, double *dZ, double *dtheta)
{
    const int more = (FACTOR_ROWS - n % FACTOR_ROWS) % FACTOR_ROWS;
    const size_t size = (size_t)M * n;
    if (f->profile->metric == METRIC_PERIODIC)
        pull_periodic(f, M, Z, ldz, n, X, ldx, S_bar, dZ, dtheta);
    if (f->profile->metric == METRIC_PRODUCT)
        pull_product(f, M, n, X, ldx, S_bar, dZ);
    if (f->profile->metric == METRIC_GROUP)
        pull_group(f, M, Z, ldz, n, X, ldx, S_bar, dZ);
    if (f->profile->metric == METRIC_SCALED) {
        for (size_t i = 0; i < size; i++)
            S_bar[i] *= 2.0;
        for (size_t i = size; i < size + (size_t)more * M; i++)
            S_bar[i] = 0.0;
        pull_scaled(f, M, Z, ldz, n, X, ldx, S_bar, dZ, dtheta);
    }
}

void factor_metric_slope(const struct factor *f, int p, int n, const double *X, int ldx,
                         double *D)
{
    const int periodic = f->profile->metric == METRIC_PERIODIC;
    const double rate = fmin(factor_rate(f, p), periodic ? 1e145 : 1e290);
    for (size_t i = 0; i < (size_t)n * n; i++)
        D[i] = 0.0;
    for (int j = 0; j < f->d; j++) {
        const double *x = X + (size_t)f->column[j] * ldx;
        if (!periodic && !f->isotropic && j != p)
            continue;
        for (int b = 0; b < n; b++)
            for (int a = 0; a < n; a++) {
                const double apart = x[a] - x[b];
                double *out = D + (size_t)b * n + a;
                if (periodic) {
                    const double turns = apart / period_of(f),
                                 angle = 2.0 * pi * (turns - floor(turns)),
                                 half = 2.0 * sin(angle / 2.0) * rate;
                    *out -= p == 0 ? 2.0 * half * half
                                   : 4.0 * pi * turns * sin(angle) * rate * rate;
                } else {
                    const double u = apart * rate;
                    *out -= 2.0 * u * u;
                }
            }
    }
}
