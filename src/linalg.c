#ifndef USE_FC_LEN_T
#define USE_FC_LEN_T
#endif
#include <math.h>
#include <string.h>
#include <Rconfig.h>
#include <R_ext/BLAS.h>
#include <R_ext/Lapack.h>
#ifndef FCONE
#define FCONE
#endif
#include "linalg.h"
#include "simd.h"

static void gemm(const char *ta, const char *tb, int m, int n, int k, double alpha,
                 const double *A, int lda, const double *B, int ldb, double beta,
                 double *C)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) { /* the BLAS would refuse a leading dimension of zero */
        const size_t mn = (size_t)m * n;
        for (size_t i = 0; i < mn; i++)
            C[i] = beta == 0.0 ? 0.0 : beta * C[i];
        return;
    }
    F77_CALL(dgemm)
    (ta, tb, &m, &n, &k, &alpha, A, &lda, B, &ldb, &beta, C, &m FCONE FCONE);
}

void mult_AB(int m, int k, int n, double alpha, const double *A, const double *B,
             double beta, double *C)
{
    gemm("N", "N", m, n, k, alpha, A, m, B, k, beta, C);
}

void mult_ABt(int m, int k, int n, double alpha, const double *A, const double *B,
              double beta, double *C)
{
    gemm("N", "T", m, n, k, alpha, A, m, B, n, beta, C);
}

void mult_AtB(int m, int k, int n, double alpha, const double *A, const double *B,
              double beta, double *C)
{
    gemm("T", "N", m, n, k, alpha, A, k, B, k, beta, C);
}

static void gemv(const char *t, int m, int n, double alpha, const double *A,
                 const double *x, double beta, double *y)
{
    const int one = 1, length = *t == 'N' ? m : n;
    if (m == 0 || n == 0) {
        for (int i = 0; i < length; i++)
            y[i] = beta == 0.0 ? 0.0 : beta * y[i];
        return;
    }
    F77_CALL(dgemv)(t, &m, &n, &alpha, A, &m, x, &one, &beta, y, &one FCONE);
}

void mult_Ax(int m, int n, double alpha, const double *A, const double *x, double beta,
             double *y)
{
    gemv("N", m, n, alpha, A, x, beta, y);
}

void mult_Atx(int m, int n, double alpha, const double *A, const double *x, double beta,
              double *y)
{
    gemv("T", m, n, alpha, A, x, beta, y);
}

void add_xyt(int m, int n, double alpha, const double *x, const double *y, double *A)
{
    const int one = 1;
    if (m == 0 || n == 0)
        return;
    F77_CALL(dger)(&m, &n, &alpha, x, &one, y, &one, A, &m);
}

void add_A_At(int m, int n, const double *A, double *C)
{
    const double one = 1.0;
    if (m == 0 || n == 0)
        return;
    F77_CALL(dsyrk)("L", "N", &m, &n, &one, A, &m, &one, C, &m FCONE FCONE);
}

void mirror_lower(int n, double *A)
{
    for (int j = 0; j < n; j++)
        for (int i = j + 1; i < n; i++)
            A[(size_t)i * n + j] = A[(size_t)j * n + i];
}

void add_transpose(int n, double *A)
{
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            const double sum = A[(size_t)j * n + i] + A[(size_t)i * n + j];
            A[(size_t)j * n + i] = A[(size_t)i * n + j] = sum;
        }
}

int chol_lower(int n, double *A)
{
    int info = 0;
    if (n == 0)
        return 0;
    F77_CALL(dpotrf)("L", &n, A, &n, &info FCONE);
    return info != 0 || chol_finish(n, A);
}

int chol_columns(int n, int start, int width, double *A)
{
    const double one = 1.0, minus = -1.0;
    const int rest = n - start - width;
    double *corner = A + (size_t)start * n + start, *below = corner + width,
           *after = A + (size_t)(start + width) * n + start + width;
    int info = 0;
    F77_CALL(dpotrf)("L", &width, corner, &n, &info FCONE);
    if (info != 0)
        return 1;
    if (rest == 0)
        return 0;
    F77_CALL(dtrsm)
    ("R", "L", "T", "N", &rest, &width, &one, corner, &n, below,
     &n FCONE FCONE FCONE FCONE);
    F77_CALL(dsyrk)
    ("L", "N", &rest, &width, &minus, below, &n, &one, after, &n FCONE FCONE);
    return 0;
}

int chol_finish(int n, double *A)
{
    for (int j = 1; j < n; j++)
        memset(A + (size_t)j * n, 0, (size_t)j * sizeof(double));
    for (int j = 0; j < n; j++) /* some LAPACKs let a NaN through */
        if (!(A[(size_t)j * n + j] > 0.0) || !isfinite(A[(size_t)j * n + j]))
            return 1;
    return 0;
}

double chol_logdet(int n, const double *L)
{
    double sum = 0.0;
    for (int j = 0; j < n; j++)
        sum += log(L[(size_t)j * n + j]);
    return 2.0 * sum;
}

static void trsm(const char *side, const char *t, int m, int n, const double *L, int ldl,
                 double *B)
{
    const double one = 1.0;
    if (m == 0 || n == 0)
        return;
    F77_CALL(dtrsm)
    (side, "L", t, "N", &m, &n, &one, L, &ldl, B, &m FCONE FCONE FCONE FCONE);
}

void solve_lower(int m, int n, const double *L, double *B)
{
    trsm("L", "N", m, n, L, m, B);
}

void solve_lower_t(int m, int n, const double *L, double *B)
{
    trsm("L", "T", m, n, L, m, B);
}

void solve_lower_right(int m, int n, const double *L, double *B)
{
    trsm("R", "N", m, n, L, n, B);
}

void solve_chol(int m, int n, const double *L, double *B)
{
    solve_lower(m, n, L, B);
    solve_lower_t(m, n, L, B);
}

void chol_adjoint(int n, const double *L, const double *Lbar, double *Kbar)
{
    mult_AtB(n, n, n, 1.0, L, Lbar, 0.0, Kbar); /* L' Lbar                         */
    for (int j = 0; j < n; j++)                 /* (Phi + Phi') / 2, Phi = tril(.) */
        for (int i = j; i < n; i++) {
            const double half = 0.5 * Kbar[(size_t)j * n + i];
            Kbar[(size_t)j * n + i] = Kbar[(size_t)i * n + j] = half;
        }
    solve_lower_t(n, n, L, Kbar);     /* L^{-T} .        */
    solve_lower_right(n, n, L, Kbar); /* L^{-T} . L^{-1} */
}

/* out[4 j + i] = a_i'b_j: eight sums at a time, each number loaded is used twice or four times */
static void dots(int m, const double *const *a, const double *const *b, double *out)
{
    const double *restrict a0 = a[0], *restrict a1 = a[1], *restrict a2 = a[2],
                           *restrict a3 = a[3], *restrict b0 = b[0], *restrict b1 = b[1];
    double s00 = 0.0, s10 = 0.0, s20 = 0.0, s30 = 0.0;
    double s01 = 0.0, s11 = 0.0, s21 = 0.0, s31 = 0.0;
    PRAGMA(omp simd reduction(+ : s00, s10, s20, s30, s01, s11, s21, s31))
    for (int i = 0; i < m; i++) {
        s00 += a0[i] * b0[i];
        s10 += a1[i] * b0[i];
        s20 += a2[i] * b0[i];
        s30 += a3[i] * b0[i];
        s01 += a0[i] * b1[i];
        s11 += a1[i] * b1[i];
        s21 += a2[i] * b1[i];
        s31 += a3[i] * b1[i];
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

/* beyond the last column the last one stands in, and is not stored */
void plain_add_AtA(int m, int n, double alpha, const double *const *A, double *C)
{
    for (int j = 0; j < n; j += 2) {
        const double *b[2] = {A[j], A[j + 1 < n ? j + 1 : j]};
        for (int i = j; i < n; i += 4) {
            const double *a[4];
            double sum[8];
            for (int l = 0; l < 4; l++)
                a[l] = A[i + l < n ? i + l : n - 1];
            dots(m, a, b, sum);
            for (int c = 0; c < 2 && j + c < n; c++)
                for (int l = 0; l < 4 && i + l < n; l++)
                    if (i + l >= j + c)
                        C[(size_t)(j + c) * n + i + l] += alpha * sum[4 * c + l];
        }
    }
}

/* four rows of B at a time, x the column so far:  x_i <- (x_i - L_i. x) / L_ii */
static void solve_four_rows(int m, int i, const double *Lt, const double *sum, double *x)
{
    for (int r = 0; r < 4 && i + r < m; r++) {
        const double *row = Lt + (size_t)(i + r) * m;
        double value = x[i + r] - sum[r];
        for (int k = i; k < i + r; k++)
            value -= row[k] * x[k];
        x[i + r] = value / row[i + r];
    }
}

void plain_solve_lower(int m, int n, const double *Lt, double *B)
{
    const int few = 16; /* columns that stay in the cache while L passes by */
    for (int first = 0; first < n; first += few) {
        const int end = n - first < few ? n : first + few;
        for (int i = 0; i < m; i += 4) {
            const double *row[4];
            for (int r = 0; r < 4; r++)
                row[r] = Lt + (size_t)(i + r < m ? i + r : m - 1) * m;
            for (int j = first; j < end; j += 2) {
                double *x[2] = {B + (size_t)j * m,
                                B + (size_t)(j + 1 < end ? j + 1 : j) * m};
                const double *b[2] = {x[0], x[1]};
                double sum[8];
                dots(i, row, b, sum);
                solve_four_rows(m, i, Lt, sum, x[0]);
                if (j + 1 < end)
                    solve_four_rows(m, i, Lt, sum + 4, x[1]);
            }
        }
    }
}

void transpose_to(int m, int n, const double *A, double *At)
{
    for (int i = 0; i < m; i += 8)
        for (int j = 0; j < n; j++)
            for (int r = i; r < m && r < i + 8; r++)
                At[(size_t)r * n + j] = A[(size_t)j * m + r];
}

double dot(size_t n, const double *x, const double *y)
{
    double a = 0.0, b = 0.0, c = 0.0,
           d = 0.0; /* four chains: no waiting for the last sum */
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        a += x[i] * y[i];
        b += x[i + 1] * y[i + 1];
        c += x[i + 2] * y[i + 2];
        d += x[i + 3] * y[i + 3];
    }
    for (; i < n; i++)
        a += x[i] * y[i];
    return (a + b) + (c + d);
}

double sum_squares(size_t n, const double *x)
{
    return dot(n, x, x);
}

double trace(int n, const double *A)
{
    double sum = 0.0;
    for (int j = 0; j < n; j++)
        sum += A[(size_t)j * n + j];
    return sum;
}

void scale_columns(int m, int n, const double *s, double *A)
{
    if (s == NULL)
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            A[(size_t)j * m + i] *= s[j];
}

void fill(size_t n, double value, double *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = value;
}

void copy(size_t n, const double *x, double *y)
{
    if (n > 0)
        memcpy(y, x, n * sizeof(double));
}

void add_scaled(size_t n, double alpha, const double *x, double *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += alpha * x[i];
}
