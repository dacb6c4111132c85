#pragma once

/* These are the kinds of correlations between the n levels of a categorical kernel, with parameters p. */
enum levels {
    LEVELS_GIVEN,        /* a given matrix without parameters */
    LEVELS_EXCHANGEABLE, /* exp(-p) for any two different levels */
    LEVELS_ORDERED, /* exp(-|s_a - s_b|); the n - 1 parameters are gaps between scores s */
    LEVELS_FULL     /* any matrix; n (n - 1) / 2 angles determine its Cholesky factor */
};

/* Returns the kind of correlations that is called `name`, or LEVELS_GIVEN if there is none. */
enum levels levels_named(const char *name);
int levels_parameters(enum levels kind, int n);

/* Computes into `table` the n x n correlations of levels, then their derivative in each log parameter p. work: n x n */
void levels_table(enum levels kind, int n, const double *p, double *work, double *table);

/* Computes into `table` the covariance S = D R D of the n random effects of one level (n x n), then its derivative in
 * each log parameter p. D is diagonal: 1, then n - 1 scales. R is a correlation matrix of kind LEVELS_FULL, or the
 * identity for LEVELS_GIVEN. p has the scales, then the parameters of R. work: n x n */
void levels_covariance(enum levels kind, int n, const double *p, double *work,
                       double *table);
