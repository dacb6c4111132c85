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
#include "gemm.h"
#include "linalg.h"
#include "simd.h"

/* `own` is the number of lanes (doubles in a vector) of the package's own code, or 0 if BLAS and LAPACK are used. */
static int own = 0;
static const double one = 1.0, minus = -1.0;

int linalg_own(int lanes)
{
    const int before = own;
    own = lanes;
    return before;
}

int linalg_lanes(void)
{
    return own ? own : GEMM_LANES;
}

/* Returns a view of A if t is "N", else of A'. A has the leading dimension ld. */
static struct strided entries(const char *t, const double *A, int ld)
{
    return *t == 'N' ? (struct strided){A, 1, ld} : (struct strided){A, ld, 1};
}

void scale_by(size_t n, double by, double *x)
{
    for (size_t i = 0; by != 1.0 && i < n; i++)
        x[i] = by == 0.0 ? 0.0 : by * x[i];
}

static void gemm(const char *ta, const char *tb, int m, int n, int k, double alpha,
                 const double *A, int lda, const double *B, int ldb, double beta,
                 double *C)
{
    if (own || m == 0 || n == 0 || k == 0) { /* BLAS refuses a leading dimension of 0 */
        scale_by((size_t)m * n, beta, C);
        gemm_add(own, m, n, k, alpha, entries(ta, A, lda), entries(tb, B, ldb), C, 1, m,
                 0);
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

/* Adds alpha A x to y. Columns of A are lda numbers apart, elements of x incx. */
CLONES static void add_Ax(int m, int n, double alpha, const double *A, int lda,
                          const double *x, int incx, double *restrict y)
{
    for (int j = 0; j < n; j += 4) { /* loads y once for four columns */
        const double *restrict a[4];
        double c[4];
        for (int q = 0; q < 4; q++) { /* missing columns repeat the last one, times 0 */
            const size_t at = (size_t)(j + q < n ? j + q : n - 1);
            a[q] = A + at * lda;
            c[q] = j + q < n ? alpha * x[at * incx] : 0.0;
        }
        const double *restrict a0 = a[0], *restrict a1 = a[1], *restrict a2 = a[2],
                               *restrict a3 = a[3];
        SIMD
        for (int i = 0; i < m; i++)
            y[i] += (c[0] * a0[i] + c[1] * a1[i]) + (c[2] * a2[i] + c[3] * a3[i]);
    }
}

void mult_Ax(int m, int n, double alpha, const double *A, const double *x, double beta,
             double *y)
{
    scale_by((size_t)m, beta, y);
    add_Ax(m, n, alpha, A, m, x, 1, y);
}

void mult_Atx(int m, int n, double alpha, const double *A, const double *x, double beta,
              double *y)
{
    scale_by((size_t)n, beta, y);
    for (int j = 0; j < n; j++)
        y[j] += alpha * dot((size_t)m, A + (size_t)j * m, x);
}

void add_xyt(int m, int n, double alpha, const double *x, const double *y, double *A)
{
    for (int j = 0; j < n; j++)
        add_scaled((size_t)m, alpha * y[j], x, A + (size_t)j * m);
}

void add_lower_ABt(int m, int n, double alpha, const double *A, const double *B,
                   double *C)
{
    gemm_add(linalg_lanes(), m, m, n, alpha, entries("N", A, m), entries("T", B, m), C, 1,
             m, 1);
}

void add_A_At(int m, int n, const double *A, double *C)
{
    if (own || m == 0 || n == 0)
        add_lower_ABt(m, n, 1.0, A, A, C);
    else
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

void add_diagonal(int n, double value, double *A)
{
    for (int j = 0; j < n; j++)
        A[(size_t)j * n + j] += value;
}

int chol_corner(int n, int height, int width, double *A)
{
    for (int j = 0; j < width; j++) {
        double *column = A + (size_t)j * n;
        add_Ax(height - j, j, -1.0, A + j, n, A + j, n, column + j);
        if (!(column[j] > 0.0) || !isfinite(column[j]))
            return 1;
        const double root = sqrt(column[j]);
        for (int i = j; i < height; i++)
            column[i] /= root;
    }
    return 0;
}

/* Computes columns start, ..., start + width - 1 of A's Cholesky factor without BLAS, and updates later columns. */
static int chol_own_columns(int n, int start, int width, double *A)
{
    const int rest = n - start - width;
    double *corner = A + (size_t)start * n + start, *below = corner + width,
           *after = below + (size_t)n * width;
    if (chol_corner(n, width, width, corner))
        return 1;
    if (rest == 0)
        return 0;
    /* below <- below corner^{-T},  after -= below below' */
    gemm_solve(own, width, rest, entries("N", corner, n), below, n, 1);
    gemm_add(own, rest, rest, width, -1.0, entries("N", below, n), entries("T", below, n),
             after, 1, n, 1);
    return 0;
}

static void trsm(const char *side, const char *t, int m, int n, const double *L, int ldl,
                 double *B, int ldb)
{
    if (m == 0 || n == 0)
        return;
    F77_CALL(dtrsm)
    (side, "L", t, "N", &m, &n, &one, L, &ldl, B, &ldb FCONE FCONE FCONE FCONE);
}

int chol_columns(int n, int start, int width, double *A)
{
    const int end = start + width, rest = n - end, most = 64;
    double *corner = A + (size_t)start * n + start, *below = corner + width,
           *after = below + (size_t)n * width;
    int info = 0;
    if (own) {
        for (; start < end && info == 0; start += most)
            info = chol_own_columns(n, start, end - start < most ? end - start : most, A);
        return info;
    }
    F77_CALL(dpotrf)("L", &width, corner, &n, &info FCONE);
    if (info != 0 || rest == 0)
        return info != 0;
    trsm("R", "T", rest, width, corner, n, below, n);
    F77_CALL(dsyrk)
    ("L", "N", &rest, &width, &minus, below, &n, &one, after, &n FCONE FCONE);
    return 0;
}

int chol_lower(int n, double *A)
{
    return n > 0 && (chol_columns(n, 0, n, A) || chol_finish(n, A));
}

int chol_shifted(int n, const double *A, double shift, double *C)
{
    if (C != A)
        copy((size_t)n * n, A, C);
    add_diagonal(n, shift, C);
    return chol_lower(n, C);
}

static void clear_upper(int n, double *A)
{
    for (int j = 1; j < n; j++)
        fill((size_t)j, 0.0, A + (size_t)j * n);
}

int chol_finish(int n, double *A)
{
    clear_upper(n, A);
    for (int j = 0; j < n; j++) /* some LAPACKs do not notice a NaN */
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

/* Returns a view of L' with rows and columns in reverse order, which is lower triangular, as gemm_solve() requires. */
static struct strided backwards(int n, const double *L)
{
    return (struct strided){L + (size_t)n * n - 1, -n, -1};
}

void solve_lower(int m, int n, const double *L, double *B)
{
    if (own)
        gemm_solve(own, m, n, entries("N", L, m), B, 1, m);
    else
        trsm("L", "N", m, n, L, m, B, m);
}

void solve_lower_squares(int m, int n, const double *L, const double *B, double *work,
                         double *squares)
{
    if (own &&
        gemm_solve_squares(own, m, n, entries("N", L, m), entries("N", B, m), squares))
        return;
    if (work != B)
        copy((size_t)m * n, B, work);
    solve_lower(m, n, L, work);
    for (int j = 0; j < n; j++)
        squares[j] = sum_squares((size_t)m, work + (size_t)j * m);
}

void solve_lower_t(int m, int n, const double *L, double *B)
{
    if (own && m > 0)
        gemm_solve(own, m, n, backwards(m, L), B + m - 1, -1, m);
    else
        trsm("L", "T", m, n, L, m, B, m);
}

void solve_lower_right(int m, int n, const double *L, double *B)
{
    if (own && n > 0) /* L' B' = B' */
        gemm_solve(own, n, m, backwards(n, L), B + (size_t)m * (n - 1), -m, 1);
    else
        trsm("R", "N", m, n, L, n, B, m);
}

void solve_chol(int m, int n, const double *L, double *B)
{
    solve_lower(m, n, L, B);
    solve_lower_t(m, n, L, B);
}

void chol_inverse(int n, const double *L, double *inverse)
{
    fill((size_t)n * n, 0.0, inverse);
    add_diagonal(n, 1.0, inverse);
    solve_chol(n, n, L, inverse);
}

void lower_inverse_columns(int n, const double *L, int start, int width, double *B)
{
    const int m = n - start;
    const struct strided rest = entries("N", L + (size_t)start * (n + 1), n);
    fill((size_t)m * width, 0.0, B);
    for (int j = 0; j < width; j++)
        B[(size_t)j * m + j] = 1.0;
    gemm_solve(linalg_lanes(), m, width, rest, B, 1, m);
}

void chol_inverse_columns(int n, const double *L, int start, int width, double *B)
{
    const int m = n - start;
    lower_inverse_columns(n, L, start, width, B);
    gemm_solve(linalg_lanes(), m, width, backwards(n, L), B + m - 1, -1, m);
}

void chol_adjoint(int n, const double *L, double *Lbar, double *Kbar)
{
    clear_upper(n, Lbar);
    mult_AtB(n, n, n, 1.0, L, Lbar, 0.0, Kbar); /* L' Lbar */
    scale_by((size_t)n * n, 0.5, Kbar);         /* (Phi + Phi') / 2, see linalg.h */
    mirror_lower(n, Kbar);
    solve_lower_t(n, n, L, Kbar);     /* L^{-T} . */
    solve_lower_right(n, n, L, Kbar); /* L^{-T} . L^{-1} */
}

double dot(size_t n, const double *x, const double *y)
{
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0; /* four sums run in parallel */
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
    for (int j = 0; s != NULL && j < n; j++)
        for (int i = 0; i < m; i++)
            A[(size_t)j * m + i] *= s[j];
}

void scale_rows(int m, int n, const double *s, double *A)
{
    for (int j = 0; s != NULL && j < n; j++)
        for (int i = 0; i < m; i++)
            A[(size_t)j * m + i] *= s[i];
}

void subtract_squares(int m, int n, const double *A, double *left)
{
    for (int i = 0; i < n; i++) {
        const double rest = left[i] - sum_squares((size_t)m, A + (size_t)i * m);
        left[i] = rest > 0.0 ? rest : 0.0;
    }
}

CLONES void fill(size_t n, double value, double *restrict x)
{
    SIMD
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
