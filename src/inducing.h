#pragma once

/* struct inducing has inducing points Z and the Cholesky factor L of k(Z, Z) + jitter diag k(z, z). */
#include "block.h"
#include "kernel.h"
#include "status.h"

struct inducing {
    const struct model *model;
    int M, columns; /* Z is M x columns, leading dimension M */
    const double *Z;
    const double *L; /* M x M lower, or NULL, see inducing_whiten() */
    double jitter;   /* added to k(Z, Z), relative to each k(z, z) */
};

static inline struct rows points_of(const struct inducing *z)
{
    return matrix_rows(z->M, z->Z);
}

/* Computes the Cholesky factor L of k(Z, Z) + jitter diag k(z, z), and sets z->L. */
enum status inducing_factor(struct inducing *z, double *L);

/* Calls inducing_factor() until it succeeds. Each failure multiplies z->jitter by 10 (0: sets 1e-15), up to `most`. */
enum status inducing_ladder(struct inducing *z, double most, double *L);

/* Computes A = L^{-1} K diag(scale) from K (M x n) = k(Z, X). If z->L is NULL, A = K diag(scale). A may be K. */
void inducing_whiten(const struct inducing *z, int n, const double *scale,
                     const double *K, double *A);

/* Computes A = L^{-1} k(Z, X_b) diag(scale) for the rows X_b of a block. */
void inducing_features(const struct inducing *z, const struct block *b, double *A);

/* Computes the residual prior variances left [n] = k(x, x) - |a|^2 >= 0, a: columns of A = L^{-1} k(Z, X) (M x n). */
void inducing_unexplained(const struct inducing *z, const struct block *b,
                          const double *A, double *left);
