#include <math.h>
#include "near.h"
#include "gemm.h"
#include "linalg.h"
#include "simd.h"

/* Kernel values are computed for this number of columns of a covariance matrix at a time. */
enum { STRIP = 4 };

size_t near_size(int s)
{
    return ((size_t)s + 1) * ((size_t)s + 1 + STRIP);
}

size_t near_rows_size(int s, int columns)
{
    return ((size_t)s + 1) * ((size_t)columns + 2);
}

/* Computes E (lower triangle), covariances of p->scale times f at the s neighbours and x, given inducing variables. */
static void unexplained(const struct near *p, double *strip, double *E)
{
    const int n = p->s + 1;
    const struct rows X = matrix_rows(n, p->X);
    for (int j = 0; j < n; j += STRIP) {
        const int rows = n - j, columns = min_int(rows, STRIP);
        kernel_cross(p->z->model->kernel, rows_from(X, j, rows), rows_from(X, j, columns),
                     strip);
        for (int c = 0; c < columns; c++) {
            const double *from = strip + (size_t)c * rows, *scale = p->scale + j;
            double *to = E + (size_t)(j + c) * n + j;
            for (int i = c; i < rows; i++)
                to[i] = from[i] * (scale[i] * scale[c]);
        }
    }
    if (p->cross != NULL) {
        for (int j = 0; j < p->s; j++)
            E[(size_t)j * n + p->s] = p->cross[j] * p->scale[j];
        E[(size_t)n * n - 1] = p->prior;
    }
    gemm_add_AtA(GEMM_LANES, p->z->M, n, -1.0, p->a, E);
    for (int j = 0; j < n; j++)
        E[(size_t)j * n + j] = fmax(E[(size_t)j * n + j], 0.0);
}

/* Computes r = a[s] - sum_j u_j a[j] over the s neighbours j. The columns a[0], ..., a[s] have M numbers each. */
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

/* Replaces u by L^{-T} u for a lower triangular L (s x s) with leading dimension s + 1. */
static void solve_transposed(int s, const double *L, double *u)
{
    for (int j = s - 1; j >= 0; j--) {
        const double *column = L + (size_t)j * (s + 1);
        u[j] = (u[j] - dot((size_t)(s - 1 - j), column + j + 1, u + j + 1)) / column[j];
    }
}

CLONES enum status near_condition(const struct near *p, double *work, double *u,
                                  double *r, double *mean, double *left)
{
    const int s = p->s, n = s + 1;
    double *E = work, *strip = E + (size_t)n * n, *diagonal = strip, most = 0.0,
           noise = p->z->model->s2;
    kernel_diagonal(p->z->model->kernel, matrix_rows(n, p->X), diagonal);
    for (int j = 0; j < s; j++)
        most = fmax(most, diagonal[j] * p->scale[j] * p->scale[j]);
    for (;;) {
        unexplained(p, strip, E);
        for (int j = 0; j < s; j++)
            E[(size_t)j * n + j] += noise;
        /* replaces (N; e') by (L; w'): N = L L' are the neighbours' covariances, e those with x, w = L^{-1} e */
        if (chol_corner(n, n, s, E) == 0)
            break;
        /* a matrix with noise above its largest variance lacks a factor only if a value is NaN or infinite */
        if (!(noise <= most))
            return STATUS_NOT_FINITE;
        noise = fmax(10.0 * noise, 1e-15 * most);
    }
    for (int j = 0; j < s; j++)
        u[j] = E[(size_t)j * n + s];
    *left = fmax(E[(size_t)n * n - 1] - sum_squares((size_t)s, u), 0.0);
    solve_transposed(s, E, u);
    *mean = dot((size_t)s, u, p->y);
    decorrelate(p->z->M, s, p->a, u, r);
    return isfinite(*mean + *left) ? STATUS_OK : STATUS_NOT_FINITE;
}

void near_decorrelate(int s, int N, const double *u, const double *d, const int *rows,
                      const double *v, int transpose, double *out)
{
    fill((size_t)N, 0.0, out);
    for (int i = 0; i < N; i++) {
        const size_t at = (size_t)s * i;
        const double own = v[i] / sqrt(d[i]);
        double sum = 0.0;
        for (int j = 0; j < s && rows[at + j] >= 0; j++)
            if (transpose)
                out[rows[at + j]] -= u[at + j] * own;
            else
                sum += u[at + j] * v[rows[at + j]];
        out[i] += own - sum / sqrt(d[i]);
    }
}
