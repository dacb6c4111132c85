#pragma once

/* Inducing points: Z and the factor L L' = k(Z, Z) + jitter diag k(z, z). */
#include "block.h"
#include "kernel.h"
#include "status.h"

struct inducing {
    const struct model *model;
    int M, columns;  /* Z is M x columns, leading dimension M */
    const double *Z; /* in the units of the inputs */
    const double *L; /* M x M lower, or NULL: see inducing_whiten */
};

/* Returns the points as rows. */
static inline struct rows points_of(const struct inducing *z)
{
    return matrix_rows(z->M, z->Z);
}

/* Computes L, which z refers to afterwards. */
enum status inducing_factor(struct inducing *z, double *L);

/* Calls inducing_factor() with the smallest jitter that works, of jitter, 10 jitter, ... <= most (0 is
 * followed by 1e-15).  It becomes the jitter of `model`. */
enum status inducing_ladder(struct model *model, struct inducing *z, double most,
                            double *L);

/* K (M x n) = k(Z, X), already evaluated.  A = L^{-1} K diag(scale), or K diag(scale)
 * where there is no L; A == K is allowed. */
void inducing_whiten(const struct inducing *z, int n, const double *scale,
                     const double *K, double *A);

/* Evaluates K = k(Z, X_b) and calls inducing_whiten(). */
void inducing_features(const struct inducing *z, const struct block *b, double *A);

/* left [n] = E_nn = k(x_n, x_n) - |a_n|^2 of the rows of a block, not below 0.  A (M x n): without scales */
void inducing_unexplained(const struct inducing *z, const struct block *b,
                          const double *A, double *left);
