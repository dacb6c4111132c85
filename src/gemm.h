#pragma once

/* These functions multiply matrices and solve triangular systems. R's reference BLAS takes 4 to 6 times as long
 * (bench/README.md). Blocks are packed for the cache, and a tile of the result stays in registers. Its size depends on
 * the processor's vectors, whose width is found at run time. Repeated calls on one processor return the same bits.
 * `lanes` is the largest number of doubles in a vector, at most GEMM_LANES.
 *
 * A matrix is a pointer and two steps: entry (i, j) is x[i * row + j * column]. Exchanged steps give the transposed
 * matrix. Negative steps from the last entry give the matrix in reverse order, to solve a system backwards. */
#include <stddef.h>

#define GEMM_LANES 8

struct strided {
    const double *x;
    ptrdiff_t row, column;
};

/* Computes C += alpha A B, A (m x k), B (k x n), with C_ij at C[i * row + j * column]; if `lower`, for i >= j only. */
void gemm_add(int lanes, int m, int n, int k, double alpha, struct strided A,
              struct strided B, double *C, ptrdiff_t row, ptrdiff_t column, int lower);

/* Computes the lower triangle of C += alpha A'A for C (n x n). a [n] has pointers to the columns of A (m x n). */
void gemm_add_AtA(int lanes, int m, int n, double alpha, const double *const *a,
                  double *C);

/* Overwrites B (m x n), with B_ij at B[i * row + j * column], by L^{-1} B. Reads the lower triangle of L (m x m). */
void gemm_solve(int lanes, int m, int n, struct strided L, double *B, ptrdiff_t row,
                ptrdiff_t column);

/* Stores |L^{-1} b_j|^2 in `squares` for the columns b_j of B (m x n). Returns 0 if m is too large for the cache. */
int gemm_solve_squares(int lanes, int m, int n, struct strided L, struct strided B,
                       double *squares);
