#pragma once

/* Declares dense algebra in functions named after their formula. Matrices are column-major, with their number of rows
 * as leading dimension. Dimensions may be 0: a product with k = 0 gives beta C. Only linalg.c calls BLAS and LAPACK. */
#include <stddef.h>
#include "status.h"

/* If `lanes` is 0, BLAS and LAPACK compute products, solves and factorisations from now on. Otherwise code of this
 * package does, in vectors of `lanes` doubles. Returns the earlier choice. */
int linalg_own(int lanes);
/* Returns the number of doubles in a vector of this package's code: linalg_own()'s choice, or GEMM_LANES if it is 0. */
int linalg_lanes(void);

/* C = alpha A B + beta C            A: m x k,  B: k x n,  C: m x n */
void mult_AB(int m, int k, int n, double alpha, const double *A, const double *B,
             double beta, double *C);
/* C = alpha A B' + beta C           A: m x k,  B: n x k,  C: m x n */
void mult_ABt(int m, int k, int n, double alpha, const double *A, const double *B,
              double beta, double *C);
/* C = alpha A' B + beta C           A: k x m,  B: k x n,  C: m x n */
void mult_AtB(int m, int k, int n, double alpha, const double *A, const double *B,
              double beta, double *C);
/* y = alpha A x + beta y            A: m x n */
void mult_Ax(int m, int n, double alpha, const double *A, const double *x, double beta,
             double *y);
/* y = alpha A' x + beta y           A: m x n */
void mult_Atx(int m, int n, double alpha, const double *A, const double *x, double beta,
              double *y);
/* A += alpha x y'                   A: m x n */
void add_xyt(int m, int n, double alpha, const double *x, const double *y, double *A);
/* C += A A', lower triangle only    A: m x n,  C: m x m */
void add_A_At(int m, int n, const double *A, double *C);
/* C += alpha A B', lower triangle only     A: m x n,  B: m x n,  C: m x m. Never calls a BLAS */
void add_lower_ABt(int m, int n, double alpha, const double *A, const double *B,
                   double *C);
void mirror_lower(int n, double *A);
void add_transpose(int n, double *A);
void add_diagonal(int n, double value, double *A);

/* Overwrites A by its lower Cholesky factor. Reads its lower triangle only. Returns 1 if A is not positive definite. */
int chol_lower(int n, double *A);
/* Writes the lower Cholesky factor of A + shift I to C, which may be A. Reads the lower triangle of A. Returns 1 if A +
 * shift I is not positive definite. */
int chol_shifted(int n, const double *A, double shift, double *C);
/* Does one step of chol_lower(), so that interrupts are possible between steps: computes columns start, ..., start +
 * width - 1 of L, and updates the lower triangle of later columns. Returns 1 if A is not positive definite. */
int chol_columns(int n, int start, int width, double *A);
/* Ends chol_columns(): sets A's upper triangle to 0. Returns 1 unless A's diagonal is positive and finite. */
int chol_finish(int n, double *A);
/* Replaces the first `width` columns (A; B), A square, of a matrix with `height` rows and leading dimension n by (L; B
 * L^{-T}), A = L L'. Returns 1 if A is not positive definite, else 0. For a few dozen rows it is faster than LAPACK. */
int chol_corner(int n, int height, int width, double *A);
/* Returns log det(L L'). */
double chol_logdet(int n, const double *L);
/* B <- L^{-1} B                     L: m x m lower,  B: m x n */
void solve_lower(int m, int n, const double *L, double *B);
/* squares [n] = |L^{-1} b_j|^2      L: m x m lower,  B: m x n,  work: m x n, may be B */
void solve_lower_squares(int m, int n, const double *L, const double *B, double *work,
                         double *squares);
/* B <- L^{-T} B                     L: m x m lower,  B: m x n */
void solve_lower_t(int m, int n, const double *L, double *B);
/* B <- B L^{-1}                     L: n x n lower,  B: m x n */
void solve_lower_right(int m, int n, const double *L, double *B);
/* B <- (L L')^{-1} B */
void solve_chol(int m, int n, const double *L, double *B);

/* inverse = (L L')^{-1} */
void chol_inverse(int n, const double *L, double *inverse);
/* Computes columns start, ..., start + width - 1 of inverse = (L L')^{-1}, from row `start` on, without BLAS. */
void chol_inverse_columns(int n, const double *L, int start, int width, double *inverse);
/* Computes columns start, ..., start + width - 1 of L^{-1} (0 above its diagonal) from row `start` on, without BLAS. */
void lower_inverse_columns(int n, const double *L, int start, int width, double *inverse);

/* Computes the adjoint of K = L L' from that of L: Kbar = L^{-T} (Phi + Phi') L^{-1} / 2, where Phi = tril(L' Lbar)
 * with halved diagonal. Reads the lower triangle of Lbar, and sets the rest to 0. Kbar must not overlap Lbar. */
void chol_adjoint(int n, const double *L, double *Lbar, double *Kbar);

double dot(size_t n, const double *x, const double *y);
double sum_squares(size_t n, const double *x);
double trace(int n, const double *A);
/* Multiplies column j of A (m x n) by s[j]. If s is NULL, A does not change. */
void scale_columns(int m, int n, const double *s, double *A);
/* Multiplies row i of A (m x n) by s[i]. If s is NULL, A does not change. */
void scale_rows(int m, int n, const double *s, double *A);
void scale_by(size_t n, double by, double *x);
/* left_j <- max(left_j - |column j of A|^2, 0)     A: m x n */
void subtract_squares(int m, int n, const double *A, double *left);
void fill(size_t n, double value, double *x);
void copy(size_t n, const double *x, double *y);
void add_scaled(size_t n, double alpha, const double *x, double *y);
