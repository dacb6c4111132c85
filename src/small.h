#ifndef PFDTC_SMALL_H
#define PFDTC_SMALL_H

/*
 * Cholesky factors of a few dozen rows, many times over: calls of LAPACK would cost as much as
 * the work.  Of n x n matrices the lower triangle is read and written; a factor has the
 * reciprocals of its diagonal in their place.
 */

/* The first `columns` columns of A <- those of its factor, and what they explain taken off the
 * rest:  ( A .  )  ->  ( L            .            )
 *        ( B C  )      ( B L^{-T}     C - B A^{-1} B' )
 * The columns after those hold the rest only where n - columns <= 1.  Returns 1 where A is not
 * positive definite in double precision. */
int small_chol(int n, int columns, double *A);

/* b <- L^{-T} b, the first s rows of a factor with leading dimension n */
void small_solve_t(int s, int n, const double *L, double *b);

#endif
