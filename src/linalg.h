#pragma once

/*
 * Dense algebra, in verbs named by their formula.  Matrices are column-major with leading
 * dimension = their rows.  Zero extents are allowed everywhere and do nothing beyond the
 * `beta` part.  This is the only file that sees BLAS and LAPACK.
 */
#include <stddef.h>
#include "status.h"

/* Chooses how products, solves and factors are computed: by gemm.h in vectors of so many lanes, or
 * (0) by BLAS and LAPACK.  Returns the choice before. */
int linalg_own(int lanes);
/* Returns the lanes that other code may use: the number of linalg_own(), or the largest one
 * there. */
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
/* Copies the lower triangle to the upper one. */
void mirror_lower(int n, double *A);
/* A += A' */
void add_transpose(int n, double *A);

/* A += value I */
void add_diagonal(int n, double value, double *A);

/* A (lower triangle read) = L L'; L overwrites A, its strict upper triangle zero.
 * Returns 0, or 1 if A is not positive definite in double precision. */
int chol_lower(int n, double *A);
/* Writes to C the Cholesky factor of A + shift I; reads the lower triangle of A; C and A may be the
 * same array.  Returns as chol_lower(). */
int chol_shifted(int n, const double *A, double shift, double *C);
/* A step of the factorisation, between which interrupts are possible: computes columns start ...
 * start + width - 1 of L, and subtracts their part from the columns after (lower triangle).  After
 * the last columns only the strict upper triangle of L is left. */
int chol_columns(int n, int start, int width, double *A);
/* Sets the strict upper triangle to 0 after chol_columns; returns 1 if L is not a factor. */
int chol_finish(int n, double *A);
/* Factorises the first `width` columns of a lower triangle with leading dimension n, `height` rows of it:
 * (A .; B .) -> (L .; B L^{-T} .).  Returns as chol_lower().  For a few dozen rows LAPACK's calls would cost as much as
 * the work. */
int chol_corner(int n, int height, int width, double *A);
/* log det(L L') */
double chol_logdet(int n, const double *L);
/* B <- L^{-1} B                     L: m x m lower,  B: m x n */
void solve_lower(int m, int n, const double *L, double *B);
/* squares [n] = |L^{-1} b_j|^2      L: m x m lower,  B: m x n,  work: as B, or B */
void solve_lower_squares(int m, int n, const double *L, const double *B, double *work,
                         double *squares);
/* B <- L^{-T} B                     L: m x m lower,  B: m x n */
void solve_lower_t(int m, int n, const double *L, double *B);
/* B <- B L^{-1}                     L: n x n lower,  B: m x n */
void solve_lower_right(int m, int n, const double *L, double *B);
/* B <- (L L')^{-1} B */
void solve_chol(int m, int n, const double *L, double *B);

/* (L L')^{-1} */
void chol_inverse(int n, const double *L, double *inverse);
/* Computes columns start ... start + width - 1 of the inverse from row `start` on, (n - start)
 * x width. Products are the engine's own. */
void chol_inverse_columns(int n, const double *L, int start, int width, double *inverse);

/* L L' = K.  Lbar (lower triangle, in; its strict upper triangle becomes zero) -> Kbar (symmetric, out):
 * Kbar = L^{-T} (Phi + Phi') L^{-1} / 2,  Phi = tril(L' Lbar) with halved diagonal.
 * Kbar must not overlap Lbar. */
void chol_adjoint(int n, const double *L, double *Lbar, double *Kbar);

double dot(size_t n, const double *x, const double *y);
double sum_squares(size_t n, const double *x);
double trace(int n, const double *A);
/* Multiplies column j of A (m x n) by s[j]. NULL stands for ones. */
void scale_columns(int m, int n, const double *s, double *A);
/* Multiplies row i of A by s[i]. */
void scale_rows(int m, int n, const double *s, double *A);
/* x *= by */
void scale_by(size_t n, double by, double *x);
/* left [n] -= squares of the columns of A (m x n), not below 0 */
void subtract_squares(int m, int n, const double *A, double *left);
void fill(size_t n, double value, double *x);
void copy(size_t n, const double *x, double *y);
/* y += alpha x */
void add_scaled(size_t n, double alpha, const double *x, double *y);
