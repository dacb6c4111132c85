#pragma once

/* Correlations between the n levels of a categorical kernel, with their derivatives. */
enum levels {
    LEVELS_GIVEN,        /* a given matrix without parameters */
    LEVELS_EXCHANGEABLE, /* exp(-p) for any two different levels */
    LEVELS_ORDERED, /* exp(-|s_a - s_b|); the n - 1 parameters are gaps between scores s */
    LEVELS_FULL     /* any matrix; n (n - 1) / 2 angles determine its Cholesky factor */
};

/* Returns the kind with a name, or LEVELS_GIVEN for other names. */
enum levels levels_named(const char *name);
int levels_parameters(enum levels kind, int n);

/* Computes the correlations of n levels, then their derivatives in the log parameters, n x n each. work: n x n */
void levels_table(enum levels kind, int n, const double *p, double *work, double *table);

/*
 * Computes the covariance S = D R D of the n random effects of one level, then its derivatives in the logs of p.  D is
 * diagonal with 1 and the n - 1 scales.  R is LEVELS_FULL, or the identity for LEVELS_GIVEN.  p has the scales, then
 * the angles of R.  work: n x n
 */
void levels_covariance(enum levels kind, int n, const double *p, double *work,
                       double *table);
