#pragma once

/* Correlations between the n levels of a categorical kernel, with their slopes. */
enum levels {
    LEVELS_GIVEN,        /* a matrix, no parameters */
    LEVELS_EXCHANGEABLE, /* exp(-p) between any two levels */
    LEVELS_ORDERED, /* exp(-|s_a - s_b|), scores s whose gaps are the n - 1 parameters */
    LEVELS_FULL     /* any matrix, by n (n - 1) / 2 angles of its Cholesky factor */
};

/* Returns the kind of that name, LEVELS_GIVEN for other names. */
enum levels levels_named(const char *name);
int levels_parameters(enum levels kind, int n);

/* table (n x n each): the correlations, then their slopes in the log of each parameter; work: n x n */
void levels_table(enum levels kind, int n, const double *p, double *work, double *table);

/*
 * Covariances of the n effects of one level, S = D R D: D has 1 and the n - 1 scales, R is LEVELS_FULL, or the
 * identity (LEVELS_GIVEN).  p: the scales, then the angles of R.  table: S, then its slopes in the logs of p.
 */
void levels_covariance(enum levels kind, int n, const double *p, double *work,
                       double *table);
