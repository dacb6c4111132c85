#pragma once

/*
 * Dense algebra in functions that are named by their formula.  Matrices are column-major, and their leading dimension
 * is their number of rows.  Dimensions may be 0; then only `beta` has an effect.  Only linalg.c calls BLAS and LAPACK.
 */
#include <stddef.h>
#include "status.h"

/* Chooses how products, solves and factorisations are computed: by gemm.h in vectors of `lanes` doubles, or by BLAS
 * and LAPACK if `lanes` is 0.  Returns the earlier choice. */
int linalg_own(int lanes);
/* Returns the argument `lanes` for functions that never call the BLAS: the choice of linalg_own(), or GEMM_LANES if
 * that choice is 0. */
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
/* Copies the lower triangle of A to its upper triangle. */
void mirror_lower(int n, double *A);
/* A += A' */
void add_transpose(int n, double *A);

/* A += value I */
void add_diagonal(int n, double value, double *A);

/* Overwrites A by its lower Cholesky factor L, A = L L'.  Only the lower triangle of A is read.  Returns 1 if A is
 * not positive definite in double precision, else 0. */
int chol_lower(int n, double *A);
/* Writes the Cholesky factor of A + shift I to C, which may be A.  Only the lower triangle of A is read.  Returns
 * what chol_lower() does. */
int chol_shifted(int n, const double *A, double shift, double *C);
/* Does one step of chol_lower(), so that interrupts are possible between steps.  Computes columns start, ..., start +
 * width - 1 of L, and updates the lower triangle of the later columns.  Returns what chol_lower() does. */
int chol_columns(int n, int start, int width, double *A);
/* Sets the strict upper triangle to 0 after the last chol_columns().  Returns 1 if a diagonal element of L is not
 * positive and finite. */
int chol_finish(int n, double *A);
/* Factorises the first `width` columns of a lower triangle with `height` rows and leading dimension n:
 * (A .; B .) -> (L .; B L^{-T} .).  Returns what chol_lower() does.  For a few dozen rows it is faster than LAPACK. */
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
/* Computes columns start, ..., start + width - 1 of (L L')^{-1} from row `start` on: (n - start) x width.  It never
 * calls the BLAS. */
void chol_inverse_columns(int n, const double *L, int start, int width, double *inverse);
/* Computes columns start, ..., start + width - 1 of L^{-1} from row `start` on (0 above it), without the BLAS. */
void lower_inverse_columns(int n, const double *L, int start, int width, double *inverse);

/* Adjoint of K = L L': computes the symmetric Kbar = L^{-T} (Phi + Phi') L^{-1} / 2, where Phi = tril(L' Lbar) with
 * halved diagonal.  Reads the lower triangle of Lbar, and sets the rest to 0.  Kbar must not overlap Lbar. */
void chol_adjoint(int n, const double *L, double *Lbar, double *Kbar);

double dot(size_t n, const double *x, const double *y);
double sum_squares(size_t n, const double *x);
double trace(int n, const double *A);
/* Multiplies column j of A (m x n) by s[j].  NULL stands for ones. */
void scale_columns(int m, int n, const double *s, double *A);
/* Multiplies row i of A (m x n) by s[i].  NULL stands for ones. */
void scale_rows(int m, int n, const double *s, double *A);
void scale_by(size_t n, double by, double *x);
/* left [n] = max(left - squared norms of the columns of A (m x n), 0) */
void subtract_squares(int m, int n, const double *A, double *left);
void fill(size_t n, double value, double *x);
void copy(size_t n, const double *x, double *y);
/* y += alpha x */
void add_scaled(size_t n, double alpha, const double *x, double *y);
