#ifndef PFDTC_SMALL_H
#define PFDTC_SMALL_H

/*
 * Cholesky factors of a few dozen rows, computed many times: calls of LAPACK would cost as much as
 * the work.  Only the lower triangle of an n x n matrix is read and written.  The diagonal of a
 * factor has its reciprocals.
 */

/* Replaces the first `columns` columns of A by those of its factor, and the rest by its Schur
 * complement:  ( A .  )  ->  ( L            .            )
 *        ( B C  )      ( B L^{-T}     C - B A^{-1} B' )
 * The columns after those hold the rest only where n - columns <= 1.  Returns 1 where A is not
 * positive definite in double precision. */
int small_chol(int n, int columns, double *A);

/* b <- L^{-T} b, the first s rows of a factor with leading dimension n */
void small_solve_t(int s, int n, const double *L, double *b);

#endif
