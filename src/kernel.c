#include <float.h>
#include <math.h>
#include <string.h>
#include "kernel.h"
#include "linalg.h"
#include "simd.h"

/* rows that pull takes at a time: dZ is loaded and stored once for them */
#define ROWS 4

/* ---- profiles ------------------------------------------------------------------------ */

/*
 * value:  r2 -> variance g(r2), in place.
 * slope:  k' = variance g'(r2) from k = variance g(r2) and r2, without a second exp:
 *           se         g = exp(-r2 / 2)               k' = -k / 2
 *           matern12   g = exp(-a), a = sqrt(r2)      k' = -k / (2 a), 0 at the kink a = 0
 *           matern32   g = (1 + a) exp(-a), a = sqrt(3 r2)          k' = -3/2 k / (1 + a)
 *           matern52   g = (1 + a + a^2/3) exp(-a), a = sqrt(5 r2)
 *                                                    k' = -5/6 (1 + a) k / (1 + a + a^2/3)
 */
struct profile {
    const char *name;
    int slope_reads_r2;
    void (*value)(int n, double variance, double *r2);
    void (*slope)(int n, const double *k, const double *r2, double *out);
};

static void se_value(int n, double variance, double *r2)
{
    for (int i = 0; i < n; i++)
        r2[i] = variance * exp(-0.5 * r2[i]);
}

static void se_slope(int n, const double *k, const double *r2, double *out)
{
    (void)r2;
    for (int i = 0; i < n; i++)
        out[i] = -0.5 * k[i];
}

static void matern12_value(int n, double variance, double *r2)
{
    for (int i = 0; i < n; i++)
        r2[i] = variance * exp(-sqrt(r2[i]));
}

static void matern12_slope(int n, const double *k, const double *r2, double *out)
{
    for (int i = 0; i < n; i++)
        out[i] = r2[i] > 0.0 ? -0.5 * k[i] / sqrt(r2[i]) : 0.0;
}

static void matern32_value(int n, double variance, double *r2)
{
    for (int i = 0; i < n; i++) {
        const double a = sqrt(3.0 * r2[i]), e = variance * exp(-a);
        r2[i] = e > 0.0 ? (1.0 + a) * e : 0.0; /* at r2 = Inf: not Inf * 0 */
    }
}

static void matern32_slope(int n, const double *k, const double *r2, double *out)
{
    for (int i = 0; i < n; i++)
        out[i] = -1.5 * k[i] / (1.0 + sqrt(3.0 * r2[i]));
}

static void matern52_value(int n, double variance, double *r2)
{
    for (int i = 0; i < n; i++) {
        const double a = sqrt(5.0 * r2[i]), e = variance * exp(-a);
        r2[i] = e > 0.0 ? (1.0 + a + a * a / 3.0) * e : 0.0;
    }
}

static void matern52_slope(int n, const double *k, const double *r2, double *out)
{
    for (int i = 0; i < n; i++) {
        const double a = sqrt(5.0 * r2[i]);
        out[i] =
            k[i] > 0.0 ? -(5.0 / 6.0) * (1.0 + a) * k[i] / (1.0 + a + a * a / 3.0) : 0.0;
    }
}

static const struct profile profiles[] = {
    {"se", 0, se_value, se_slope},
    {"matern12", 1, matern12_value, matern12_slope},
    {"matern32", 1, matern32_value, matern32_slope},
    {"matern52", 1, matern52_value, matern52_slope},
};

const struct profile *kernel_profile(const char *name)
{
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
        if (strcmp(profiles[i].name, name) == 0)
            return profiles + i;
    return NULL;
}

/* ---- distances ------------------------------------------------------------------------ */

int kernel_n_theta(const struct kernel *k)
{
    return k->d + 1;
}

size_t kernel_size(const struct kernel *k, int M)
{
    (void)k;
    return (ROWS + 1) * (size_t)M; /* dF / d r2 of some rows, and r2 of one */
}

/* 1 / l, finite: of lengthscales below 6e-309 a difference of 0 is still 0, any other infinite */
static double rate_of(const struct kernel *k, int j)
{
    return fmin(1.0 / k->lengthscale[j], DBL_MAX);
}

/* r2[m] = sum_j ((x_j - z_mj) / l_j)^2: differences first, so that nothing is lost however
 * far from 0 the inputs are */
static void squared_distances(const struct kernel *k, int M, const double *Z, int ldz,
                              const double *x, int ldx, double *restrict r2)
{
    for (int m = 0; m < M; m++)
        r2[m] = 0.0;
    for (int j = 0; j < k->d; j++) {
        const double *restrict z = Z + (size_t)k->column[j] * ldz;
        const double xj = x[(size_t)k->column[j] * ldx], rate = rate_of(k, j);
        SIMD
        for (int m = 0; m < M; m++) {
            const double u = (xj - z[m]) * rate;
            r2[m] += u * u;
        }
    }
}

/* ---- the three verbs ------------------------------------------------------------------- */

void kernel_cross(const struct kernel *k, int M, const double *Z, int ldz, int n,
                  const double *X, int ldx, double *K)
{
    for (int i = 0; i < n; i++) {
        double *r2 = K + (size_t)i * M;
        squared_distances(k, M, Z, ldz, X + i, ldx, r2);
        k->profile->value(M, k->variance, r2);
    }
}

void kernel_diagonal(const struct kernel *k, int n, const double *X, int ldx,
                     double *diagonal)
{
    (void)X;
    (void)ldx;
    fill((size_t)n, k->variance, diagonal);
}

/* w (M x ROWS) = 2 dF / d r2 of `rows` rows from x on, zero for the others; adds dF / d log
 * variance */
static void pull_weights(const struct kernel *k, int M, const double *Z, int ldz,
                         int rows, const double *x, int ldx, const double *K,
                         const double *K_bar, double *r2, double *w, double *dtheta)
{
    for (int i = 0; i < rows; i++) {
        const double *Ki = K + (size_t)i * M, *restrict bar = K_bar + (size_t)i * M;
        double *restrict wi = w + (size_t)i * M;
        if (k->profile->slope_reads_r2)
            squared_distances(k, M, Z, ldz, x + i, ldx, r2);
        k->profile->slope(M, Ki, r2, wi);
        SIMD
        for (int m = 0; m < M; m++)
            wi[m] *= 2.0 * bar[m];
        if (dtheta != NULL)
            dtheta[k->d] += dot((size_t)M, Ki, bar);
    }
    fill((size_t)(ROWS - rows) * M, 0.0, w + (size_t)rows * M);
}

/* g -= sum_i w_i u_i / l,  u = (x - z) / l:  d r2 / d z = -2 u / l */
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

void kernel_pull(const struct kernel *k, int M, const double *Z, int ldz, int n,
                 const double *X, int ldx, const double *K, const double *K_bar,
                 double *work, double *dZ, double *dtheta)
{
    double *w = work, *r2 = work + ROWS * (size_t)M;
    for (int i = 0; i < n; i += ROWS) {
        const int rows = n - i < ROWS ? n - i : ROWS;
        pull_weights(k, M, Z, ldz, rows, X + i, ldx, K + (size_t)i * M,
                     K_bar + (size_t)i * M, r2, w, dtheta);
        for (int j = 0; j < k->d; j++) {
            const size_t column = (size_t)k->column[j];
            /* below 1e-290 a lengthscale is 0 for the kernel, but u must not be infinite */
            const double *z = Z + column * ldz, rate = fmin(rate_of(k, j), 1e290);
            double x[ROWS];
            for (int a = 0; a < ROWS; a++) /* a missing row repeats one, with weight 0 */
                x[a] = X[i + (a < rows ? a : 0) + column * ldx];
            if (dZ != NULL)
                pull_points(M, rate, x, z, w, dZ + column * M);
            if (dtheta != NULL)
                dtheta[j] -= pull_lengthscale(M, rate, x, z, w);
        }
    }
}

size_t kernel_self_size(const struct kernel *k, int M, int columns)
{
    return kernel_size(k, M) + (size_t)M * M + (size_t)M * columns;
}

void kernel_pull_self(const struct kernel *k, int M, int columns, const double *Z,
                      int ldz, double jitter, const double *K_bar, double *work,
                      double *dZ, double *dtheta)
{
    const size_t size = (size_t)M * columns;
    double *K = work, *half = K + (size_t)M * M, *rest = half + size;
    kernel_cross(k, M, Z, ldz, M, Z, ldz, K);
    fill(size, 0.0, half);
    kernel_pull(k, M, Z, ldz, M, Z, ldz, K, K_bar, rest, half, dtheta);
    if (dZ != NULL)
        add_scaled(size, 2.0, half, dZ); /* z_m is a row and a column */
    if (dtheta != NULL)
        dtheta[k->d] += jitter * k->variance * trace(M, K_bar);
}

/* out += t u_b and, by symmetry, what row b gets: t'u,  t_a = w_a ((x_a - x_b) / l)^2 */
static double slope_column(int n, double rate, double xb, const double *restrict x,
                           const double *restrict w, double ub, const double *restrict u,
                           double *restrict out)
{
    double sum = 0.0;
    SIMD_SUM
    for (int a = 0; a < n; a++) {
        const double v = (x[a] - xb) * rate, t = w[a] * v * v;
        out[a] += t * ub;
        sum += t * u[a];
    }
    return sum;
}

void kernel_self_slopes(const struct kernel *k, int n, const double *X, int ldx,
                        const double *K, const double *u, double *work, double *out)
{
    double *w = work, *r2 = work + n, *of_variance = out + (size_t)k->d * n;
    fill((size_t)n * (k->d + 1), 0.0, out);
    for (int b = 0; b < n; b++) { /* the rows below b, and by symmetry those beside it */
        const int below = n - b - 1;
        const double *Kb = K + (size_t)b * n + b + 1;
        const double *at = X + b, *under = at + 1;
        if (k->profile->slope_reads_r2)
            squared_distances(k, below, under, ldx, at, ldx, r2);
        k->profile->slope(below, Kb, r2, w);
        for (int a = 0; a < below; a++)
            w[a] *= -2.0; /* d r2 / d log l = -2 ((x_a - x_b) / l)^2 */
        for (int j = 0; j < k->d; j++) {
            const size_t column = (size_t)k->column[j] * ldx;
            double *o = out + (size_t)j * n + b;
            o[0] += slope_column(below, fmin(rate_of(k, j), 1e290), at[column],
                                 under + column, w, u[b], u + b + 1, o + 1);
        }
        of_variance[b] += Kb[-1] * u[b] + dot((size_t)below, Kb, u + b + 1);
        add_scaled((size_t)below, u[b], Kb, of_variance + b + 1);
    }
}

void kernel_pull_diagonal(const struct kernel *k, double sum, double sum_bar,
                          double *dtheta)
{
    dtheta[k->d] += sum_bar * sum;
}
