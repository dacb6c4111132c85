/* Naive dense algebra, and the matrices of a problem by their definitions (theory vignette, section 1). */
#include <math.h>
#include <string.h>
#include "ctest.h"

struct matrix matrix_new(int rows, int columns)
{
    return (struct matrix){rows, columns, array_zero((size_t)rows * columns)};
}

struct matrix matrix_of(int rows, int columns, const double *x)
{
    return (struct matrix){rows, columns, array_copy((size_t)rows * columns, x)};
}

static double *entry(struct matrix A, int i, int j)
{
    return A.x + (size_t)j * A.rows + i;
}

double at(struct matrix A, int i, int j)
{
    return *entry(A, i, j);
}

struct matrix identity(int n)
{
    struct matrix I = matrix_new(n, n);
    for (int i = 0; i < n; i++)
        *entry(I, i, i) = 1.0;
    return I;
}

struct matrix transposed(struct matrix A)
{
    struct matrix At = matrix_new(A.columns, A.rows);
    for (int i = 0; i < A.rows; i++)
        for (int j = 0; j < A.columns; j++)
            *entry(At, j, i) = at(A, i, j);
    return At;
}

struct matrix times(struct matrix A, struct matrix B)
{
    struct matrix C = matrix_new(A.rows, B.columns);
    for (int i = 0; i < A.rows; i++)
        for (int j = 0; j < B.columns; j++)
            for (int k = 0; k < A.columns; k++)
                *entry(C, i, j) += at(A, i, k) * at(B, k, j);
    return C;
}

struct matrix plus(struct matrix A, double beta, struct matrix B)
{
    struct matrix C = matrix_of(A.rows, A.columns, A.x);
    for (int i = 0; i < A.rows; i++)
        for (int j = 0; j < A.columns; j++)
            *entry(C, i, j) += beta * at(B, i, j);
    return C;
}

struct matrix scaled_rows(const double *s, struct matrix A)
{
    struct matrix C = matrix_of(A.rows, A.columns, A.x);
    for (int i = 0; i < A.rows && s != NULL; i++)
        for (int j = 0; j < A.columns; j++)
            *entry(C, i, j) *= s[i];
    return C;
}

struct matrix scaled_columns(struct matrix A, const double *s)
{
    return transposed(scaled_rows(s, transposed(A)));
}

static void swap_rows(struct matrix A, int i, int k)
{
    for (int j = 0; j < A.columns; j++) {
        const double kept = at(A, i, j);
        *entry(A, i, j) = at(A, k, j);
        *entry(A, k, j) = kept;
    }
}

/* Gauss-Jordan elimination with row pivots */
struct matrix inverse(struct matrix A, double *log_det)
{
    const int n = A.rows;
    struct matrix R = matrix_of(n, n, A.x), I = identity(n);
    double sum = 0.0;
    for (int c = 0; c < n; c++) {
        int best = c;
        for (int i = c; i < n; i++)
            if (fabs(at(R, i, c)) > fabs(at(R, best, c)))
                best = i;
        swap_rows(R, c, best);
        swap_rows(I, c, best);
        const double pivot = at(R, c, c);
        sum += log(fabs(pivot));
        for (int j = 0; j < n; j++) {
            *entry(R, c, j) /= pivot;
            *entry(I, c, j) /= pivot;
        }
        for (int i = 0; i < n; i++) {
            const double factor = at(R, i, c);
            for (int j = 0; j < n && i != c; j++) {
                *entry(R, i, j) -= factor * at(R, c, j);
                *entry(I, i, j) -= factor * at(I, c, j);
            }
        }
    }
    if (log_det != NULL)
        *log_det = sum;
    return I;
}

double trace_of(struct matrix A)
{
    double sum = 0.0;
    for (int i = 0; i < A.rows; i++)
        sum += at(A, i, i);
    return sum;
}

struct matrix random_spd(int n)
{
    struct matrix R = {n, n, array_random((size_t)n * n, -1.0, 1.0)};
    return plus(times(R, transposed(R)), 0.5, identity(n));
}

/* ---- kernels ----------------------------------------------------------------------- */

double naive_profile(const char *name, double r)
{
    if (strcmp(name, "se") == 0)
        return exp(-r * r / 2.0);
    if (strcmp(name, "matern12") == 0)
        return exp(-r);
    if (strcmp(name, "matern32") == 0)
        return (1.0 + sqrt(3.0) * r) * exp(-sqrt(3.0) * r);
    if (strcmp(name, "matern52") == 0)
        return (1.0 + sqrt(5.0) * r + 5.0 * r * r / 3.0) * exp(-sqrt(5.0) * r);
    return NAN;
}

struct matrix naive_kernel(const struct covariance *c, int n_a, const double *a, int lda,
                           int n_b, const double *b, int ldb)
{
    const struct factor *f = c->kernel.factor;
    struct matrix K = matrix_new(n_a, n_b);
    for (int i = 0; i < n_a; i++)
        for (int j = 0; j < n_b; j++) {
            double r2 = 0.0;
            for (int h = 0; h < c->d; h++)
                r2 += pow((a[i + (size_t)f->column[h] * lda] -
                           b[j + (size_t)f->column[h] * ldb]) /
                              c->lengthscale[h],
                          2.0);
            *entry(K, i, j) = *c->variance * naive_profile(c->name, sqrt(r2));
        }
    return K;
}

/* ---- a problem, dense -------------------------------------------------------------- */

struct dense dense_of(const struct problem *p)
{
    const struct shape s = p->shape;
    const struct covariance *c = &p->covariance;
    const struct matrix W = matrix_of(s.n_u, s.q, p->W);
    struct dense f;
    f.Kzz = naive_kernel(c, s.M, p->Z, s.M, s.M, p->Z, s.M);
    f.Kmm = plus(f.Kzz, p->jitter * *c->variance, identity(s.M));
    f.Kmm_inverse = inverse(f.Kmm, NULL);
    f.Kxm = scaled_rows(p->scale, naive_kernel(c, s.N, p->X, s.N, s.M, p->Z, s.M));
    f.K = scaled_rows(p->scale, naive_kernel(c, s.N, p->X, s.N, s.N, p->X, s.N));
    f.K = scaled_columns(f.K, p->scale);
    f.Q = times(times(f.Kxm, f.Kmm_inverse), transposed(f.Kxm));
    f.B = plus(f.Q, p->s2, identity(s.N));
    f.B_inverse = inverse(f.B, &f.log_det_B);
    f.y = scaled_rows(p->scale, matrix_of(s.N, 1, p->y));
    f.Wx = times(naive_kernel(c, s.N, p->X, s.N, s.n_u, p->U, s.n_u), W);
    f.Wx = scaled_rows(p->scale, f.Wx);
    f.Wm = times(naive_kernel(c, s.M, p->Z, s.M, s.n_u, p->U, s.n_u), W);
    return f;
}
