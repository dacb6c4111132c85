#pragma once

/*
 * Products and triangular solves for an R with the reference BLAS, which takes six times as long as
 * necessary: blocks are packed into the cache, and a tile of the result stays in registers.  The tile
 * is as wide as the vectors of the processor, chosen at run time if the compiler can build for
 * several.  One processor gives the same bits.  `lanes`: the most doubles in a vector, at most
 * GEMM_LANES.
 *
 * A matrix is a pointer and two steps, with entry (i, j) at x[i * row + j * column].  So a transpose,
 * or a system solved backwards, has other steps over the same numbers.
 */
#include <stddef.h>

#define GEMM_LANES 8

struct strided {
    const double *x;
    ptrdiff_t row, column;
};

/* C += alpha A B            A: m x k,  B: k x n,  C: m x n, entry (i, j) at C[i * row + j * column]
 * lower: only where i >= j. */
void gemm_add(int lanes, int m, int n, int k, double alpha, struct strided A,
              struct strided B, double *C, ptrdiff_t row, ptrdiff_t column, int lower);

/* C += alpha A'A, lower triangle only      a [n]: the columns of A, m long,  C: n x n */
void gemm_add_AtA(int lanes, int m, int n, double alpha, const double *const *a,
                  double *C);

/* B <- L^{-1} B             L: m x m, read where i >= j,  B: m x n, stepped as C above */
void gemm_solve(int lanes, int m, int n, struct strided L, double *B, ptrdiff_t row,
                ptrdiff_t column);

/* squares [n] = |L^{-1} b_j|^2 in one step, if m is small enough for the cache; else it does nothing
 * and returns 0 */
int gemm_solve_squares(int lanes, int m, int n, struct strided L, struct strided B,
                       double *squares);
