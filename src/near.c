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

void near_unexplained(const struct near *p, double *E)
{
    const int n = p->s + 1;
    for (int j = 0; j < n; j++) {
        double *column = E + (size_t)j * n;
        kernel_cross(p->kernel, n - j, p->X + j, n, 1, p->X + j, n, column + j);
        for (int i = j; i < n; i++)
            column[i] *= p->scale[i] * p->scale[j];
    }
    plain_add_AtA(p->M, n, -1.0, p->a, E);
    for (int j = 0; j < n; j++)
        E[(size_t)j * n + j] = fmax(E[(size_t)j * n + j], 0.0);
}

/* y -= sum_k c[k ldc] x_k over the columns x_k of X, ldx apart; y and x_k from `first` on */
INSIDE void subtract_columns(int first, int n, int columns, const double *X, int ldx,
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
INSIDE int factor_bordered(int n, double *E)
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
INSIDE void solve_bordered(int n, const double *E, double *u)
{
    for (int j = n - 2; j >= 0; j--) {
        const double *column = E + (size_t)j * n;
        u[j] = (column[n - 1] - dot((size_t)(n - 2 - j), column + j + 1, u + j + 1)) /
               column[j];
    }
}

/* r = a - A_S u */
INSIDE void decorrelate(int M, int s, const double *const *a, const double *u, double *r)
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

CLONES enum status near_condition(const struct near *p, double *work, double *u,
                                  double *r, double *mean, double *left)
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

size_t near_joint_size(const struct joint *p, int b)
{
    return (size_t)b * ((size_t)p->n + 1);
}

void near_joint_add(const struct joint *p, int first, int b, double *work,
                    double *covariance)
{
    const size_t n = (size_t)p->n, rows = (size_t)b;
    double *T = work, *k = T + rows * n; /* T = (K + noise)_b. W:  b x n */
    fill(rows * n, 0.0, T);
    for (int l = 0; l < p->n_points; l++) {
        kernel_cross(p->kernel, b, p->X + first, p->n_points, 1, p->X + l, p->n_points,
                     k);
        if (l >= first && l < first + b)
            k[l - first] += p->noise[l];
        for (int e = p->start[l]; e < p->start[l + 1]; e++)
            add_scaled(rows, p->weight[e], k, T + rows * (size_t)p->column[e]);
    }
    for (size_t j = 0; j < n; j++)
        for (int l = 0; l < b; l++)
            for (int e = p->start[first + l]; e < p->start[first + l + 1]; e++)
                covariance[n * j + (size_t)p->column[e]] +=
                    p->weight[e] * T[rows * j + (size_t)l];
}
