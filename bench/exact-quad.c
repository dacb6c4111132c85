/*
 * The exact GP in quadruple precision, for bench/certify-properties.R and bench/bounds-properties.R: what a certificate
 * is held against when double precision is the doubt. Called by .C(); needs a compiler with __float128 (gcc, x86).
 *
 *     mean = center + k(x, X) alpha,  alpha = (K + s2 W^{-1})^{-1} (y - center),  variance = k(x, x) - |L^{-1} k(X, x)|^2
 *     log evidence = -(n log(2 pi) + log det(K + s2 W^{-1}) + (y - center)'alpha) / 2
 */
#include <quadmath.h>
#include <stdlib.h>

typedef __float128 quad;

/* profiles: 0 se, 1 matern12, 2 matern32, 3 matern52 */
static quad value(int profile, quad variance, quad r2)
{
    quad a;
    switch (profile) {
    case 0:
        return variance * expq(-r2 / 2);
    case 1:
        return variance * expq(-sqrtq(r2));
    case 2:
        a = sqrtq(3 * r2);
        return variance * (1 + a) * expq(-a);
    default:
        a = sqrtq(5 * r2);
        return variance * (1 + a + a * a / 3) * expq(-a);
    }
}

static quad cross(int profile, quad variance, int d, const double *lengthscale,
                  const double *x, int ldx, const double *z, int ldz)
{
    quad r2 = 0;
    for (int j = 0; j < d; j++) {
        const quad u = ((quad)x[(size_t)j * ldx] - z[(size_t)j * ldz]) / lengthscale[j];
        r2 += u * u;
    }
    return value(profile, variance, r2);
}

/* B (n x m) := L^{-1} B, the rows of L one after another in memory */
static void solve(int n, int m, const quad *L, quad *B)
{
    for (int c = 0; c < m; c++) {
        quad *b = B + (size_t)c * n;
        for (int i = 0; i < n; i++) {
            const quad *row = L + (size_t)i * n;
            quad sum = b[i];
            for (int j = 0; j < i; j++)
                sum -= row[j] * b[j];
            b[i] = sum / row[i];
        }
    }
}

/* L L' = K + s2 W^{-1}, row after row, and b = y - offset - center: 0, or 1 where it is not positive definite */
static int factor(int profile, double variance, int d, const double *lengthscale,
                  double s2, int n, const double *x, const double *y,
                  const double *offset, double center, const double *weights, quad *L,
                  quad *b)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            L[(size_t)i * n + j] =
                cross(profile, variance, d, lengthscale, x + i, n, x + j, n);
        L[(size_t)i * n + i] += (quad)s2 / weights[i];
        b[i] = (quad)y[i] - offset[i] - center;
    }
    for (int i = 0; i < n; i++) {
        quad *row = L + (size_t)i * n;
        for (int j = 0; j <= i; j++) {
            const quad *other = L + (size_t)j * n;
            quad sum = row[j];
            for (int q = 0; q < j; q++)
                sum -= row[q] * other[q];
            if (j < i)
                row[j] = sum / other[j];
            else if (sum > 0)
                row[i] = sqrtq(sum);
            else
                return 1;
        }
    }
    return 0;
}

void exact_quad(const int *profile, const double *variance, const double *lengthscale,
                const double *s2, const int *n_, const int *d, const double *x,
                const double *y, const double *offset, const double *center,
                const double *weights, const int *m_, const double *x_new, double *mean,
                double *mean_low, double *sd, int *status)
{
    const int n = *n_, m = *m_;
    quad *L = malloc((size_t)n * n * sizeof(quad)), *b = malloc((size_t)n * sizeof(quad)),
         *k = malloc((size_t)n * sizeof(quad));
    *status = factor(*profile, *variance, *d, lengthscale, *s2, n, x, y, offset, *center,
                     weights, L, b);
    if (*status == 0) {
        solve(n, 1, L, b);
        for (int c = 0; c < m; c++) {
            quad sum = *center, left = *variance;
            for (int i = 0; i < n; i++)
                k[i] = cross(*profile, *variance, *d, lengthscale, x + i, n, x_new + c, m);
            solve(n, 1, L, k);
            for (int i = 0; i < n; i++) {
                sum += k[i] * b[i];
                left -= k[i] * k[i];
            }
            mean[c] = (double)sum; /* and the digits that a double has no room for */
            mean_low[c] = (double)(sum - mean[c]);
            sd[c] = (double)sqrtq(left > 0 ? left : 0);
        }
    }
    free(L);
    free(b);
    free(k);
}

/* evidence: [2], the number and the digits that a double has no room for */
void evidence_quad(const int *profile, const double *variance, const double *lengthscale,
                   const double *s2, const int *n_, const int *d, const double *x,
                   const double *y, const double *offset, const double *center,
                   const double *weights, double *evidence, int *status)
{
    const int n = *n_;
    quad *L = malloc((size_t)n * n * sizeof(quad)), *b = malloc((size_t)n * sizeof(quad));
    *status = factor(*profile, *variance, *d, lengthscale, *s2, n, x, y, offset, *center,
                     weights, L, b);
    if (*status == 0) {
        quad sum = n * logq(2 * M_PIq);
        solve(n, 1, L, b);
        for (int i = 0; i < n; i++)
            sum += 2 * logq(L[(size_t)i * n + i]) + b[i] * b[i];
        sum = -sum / 2;
        evidence[0] = (double)sum;
        evidence[1] = (double)(sum - evidence[0]);
    }
    free(L);
    free(b);
}
