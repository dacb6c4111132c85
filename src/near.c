#include <math.h>
#include "near.h"
#include "linalg.h"
#include "simd.h"

size_t near_size(int s)
{
    return ((size_t)s + 1) * ((size_t)s + 1) + (size_t)s + 1;
}

size_t near_rows_size(int s, int columns)
{
    return ((size_t)s + 1) * ((size_t)columns + 2);
}

/* out[4 j + i] = a_i'b_j: eight sums at a time, each number loaded is used twice or four times */
static void dots(int M, const double *const *a, const double *const *b, double *out)
{
    const double *restrict a0 = a[0], *restrict a1 = a[1], *restrict a2 = a[2],
                           *restrict a3 = a[3], *restrict b0 = b[0], *restrict b1 = b[1];
    double s00 = 0.0, s10 = 0.0, s20 = 0.0, s30 = 0.0;
    double s01 = 0.0, s11 = 0.0, s21 = 0.0, s31 = 0.0;
    PRAGMA(omp simd reduction(+ : s00, s10, s20, s30, s01, s11, s21, s31))
    for (int m = 0; m < M; m++) {
        s00 += a0[m] * b0[m];
        s10 += a1[m] * b0[m];
        s20 += a2[m] * b0[m];
        s30 += a3[m] * b0[m];
        s01 += a0[m] * b1[m];
        s11 += a1[m] * b1[m];
        s21 += a2[m] * b1[m];
        s31 += a3[m] * b1[m];
    }
    out[0] = s00;
    out[1] = s10;
    out[2] = s20;
    out[3] = s30;
    out[4] = s01;
    out[5] = s11;
    out[6] = s21;
    out[7] = s31;
}

/* E -= A'A on the lower triangle; beyond the last column the last one stands in */
static void subtract_AtA(int M, int n, const double *const *A, double *E)
{
    for (int j = 0; j < n; j += 2) {
        const double *b[2] = {A[j], A[j + 1 < n ? j + 1 : j]};
        for (int i = j; i < n; i += 4) {
            const double *a[4];
            double sum[8];
            for (int l = 0; l < 4; l++)
                a[l] = A[i + l < n ? i + l : n - 1];
            dots(M, a, b, sum);
            for (int c = 0; c < 2 && j + c < n; c++)
                for (int l = 0; l < 4 && i + l < n; l++)
                    if (i + l >= j + c)
                        E[(size_t)(j + c) * n + i + l] -= sum[4 * c + l];
        }
    }
}

void near_unexplained(const struct near *p, double *E)
{
    const int n = p->s + 1;
    for (int j = 0; j < n; j++) {
        double *column = E + (size_t)j * n;
        kernel_cross(p->kernel, n - j, p->X + j, n, 1, p->X + j, n, column + j);
        for (int i = j; i < n; i++)
            column[i] *= p->scale[i] * p->scale[j];
    }
    subtract_AtA(p->M, n, p->a, E);
    for (int j = 0; j < n; j++)
        E[(size_t)j * n + j] = fmax(E[(size_t)j * n + j], 0.0);
}

/* y -= sum_k c[k ldc] x_k over the columns x_k of X, ldx apart; y and x_k from `first` on */
static void subtract_columns(int first, int n, int columns, const double *X, int ldx,
                             const double *c, int ldc, double *restrict y)
{
    int k = 0;
    for (; k + 4 <= columns; k += 4) {
        const double *restrict x0 = X + (size_t)k * ldx, *restrict x1 = x0 + ldx,
                               *restrict x2 = x1 + ldx, *restrict x3 = x2 + ldx;
        const double *ck = c + (size_t)k * ldc;
        const double c0 = ck[0], c1 = ck[(size_t)ldc], c2 = ck[2 * (size_t)ldc],
                     c3 = ck[3 * (size_t)ldc];
        SIMD
        for (int i = first; i < n; i++)
            y[i] -= (c0 * x0[i] + c1 * x1[i]) + (c2 * x2[i] + c3 * x3[i]);
    }
    for (; k < columns; k++) {
        const double *restrict x = X + (size_t)k * ldx, ck = c[(size_t)k * ldc];
        SIMD
        for (int i = first; i < n; i++)
            y[i] -= ck * x[i];
    }
}

/*
 * Cholesky of the first s = n - 1 columns of the bordered matrix (lower triangle)
 *
 *     ( N   .    )      ( L   .                  )
 *     ( e'  E_xx )  ->  ( w'  E_xx - e'N^{-1}e   ),   w = L^{-1} e
 *
 * Returns 1 where N is not positive definite in double precision.
 */
static int factor_bordered(int n, double *E)
{
    for (int j = 0; j < n; j++) {
        double *column = E + (size_t)j * n;
        subtract_columns(j, n, j, E, n, E + j, n, column);
        if (j == n - 1)
            break;
        if (!(column[j] > 0.0) || !isfinite(column[j]))
            return 1;
        const double root = sqrt(column[j]), rate = 1.0 / root;
        column[j] = root;
        for (int i = j + 1; i < n; i++)
            column[i] *= rate;
    }
    return 0;
}

/* u = L^{-T} w, w the last row of the bordered factor */
static void solve_bordered(int n, const double *E, double *u)
{
    for (int j = n - 2; j >= 0; j--) {
        const double *column = E + (size_t)j * n;
        u[j] = (column[n - 1] - dot((size_t)(n - 2 - j), column + j + 1, u + j + 1)) /
               column[j];
    }
}

/* r = a - A_S u */
static void decorrelate(int M, int s, const double *const *a, const double *u, double *r)
{
    int j = 0;
    copy((size_t)M, a[s], r);
    for (; j + 4 <= s; j += 4) {
        const double *restrict a0 = a[j], *restrict a1 = a[j + 1],
                               *restrict a2 = a[j + 2], *restrict a3 = a[j + 3];
        const double u0 = u[j], u1 = u[j + 1], u2 = u[j + 2], u3 = u[j + 3];
        double *restrict out = r;
        SIMD
        for (int m = 0; m < M; m++)
            out[m] -= (u0 * a0[m] + u1 * a1[m]) + (u2 * a2[m] + u3 * a3[m]);
    }
    for (; j < s; j++)
        add_scaled((size_t)M, -u[j], a[j], r);
}

enum status near_condition(const struct near *p, double *work, double *u, double *r,
                           double *mean, double *left)
{
    const int s = p->s, n = s + 1;
    double *E = work, *diagonal = E + (size_t)n * n, most = 0.0, noise = p->s2;
    kernel_diagonal(p->kernel, n, p->X, n, diagonal);
    for (int j = 0; j < s; j++)
        most = fmax(most, diagonal[j] * p->scale[j] * p->scale[j]);
    for (;;) {
        near_unexplained(p, E);
        for (int j = 0; j < s; j++)
            E[(size_t)j * n + j] += noise;
        if (factor_bordered(n, E) == 0)
            break;
        if (!(noise <= most)) /* NaN or infinite: s times the largest would always do */
            return STATUS_NOT_FINITE;
        noise = fmax(10.0 * noise, 1e-15 * most);
    }
    solve_bordered(n, E, u);
    *mean = dot((size_t)s, u, p->y);
    *left = fmax(E[(size_t)n * n - 1], 0.0);
    decorrelate(p->M, s, p->a, u, r);
    return isfinite(*mean + *left) ? STATUS_OK : STATUS_NOT_FINITE;
}
