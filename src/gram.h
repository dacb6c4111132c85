#pragma once

/* Kernel matrices of two blocks or of all rows, and products with these matrices. */
#include "pass.h"

/* Computes K_cb = k(X_c, X_b), with the blocks' scales on both sides. */
void pairs_kernel(const struct kernel *k, const struct block *b, const struct block *c,
                  double *K_cb);

/* Computes K_cb and out_b (m x n_b) += P_c K_cb for P_c (m x n_c), which belongs to the rows of block c. */
void pairs_add(const struct kernel *k, const struct block *b, const struct block *c,
               int m, const double *P_c, double *K_cb, double *out_b);

/* pairs_add_both() adds out_b += K_cb'p_c and, if c is not b, out_c += K_cb p_b.  It ignores the scales of blocks.
 * Each p and out has m vectors with leading dimension ldp. */
size_t pairs_both_size(int n_b, int n_c);
void pairs_add_both(const struct kernel *k, const struct block *b, const struct block *c,
                    int m, int ldp, const double *p_b, const double *p_c, double *work,
                    double *out_b, double *out_c);

/* Computes the residual prior covariance E_cb (n_c x n_b) = K_cb - A_c'A_b. K and A have the same scales. */
void pairs_unexplained(const struct kernel *k, const struct block *b,
                       const struct block *c, int M, const double *A_b, const double *A_c,
                       double *E_cb);

/* A sink for out (n x N) = k(X, x), with n points X and the rows x of the pass. */
struct kernel_matrix {
    const struct kernel *kernel;
    struct block points;
    double *out;
};
struct sink kernel_matrix_sink(const struct kernel_matrix *self);

/* A sink for K V, with K = k(X, X) for the rows X of the pass, without scales.  With shares > 1, it reads only pairs of
 * blocks b and c with (b + c) mod shares = `share`.  The results of all shares add up to K V. */
struct kernel_matvecs {
    const struct kernel *kernel;
    const struct pass *pass;
    int m;
    const double *V; /* N x m */
    int share, shares;
};
struct sink kernel_matvecs_sink(const struct kernel_matvecs *self, double *KV);

/* A sink for k(x, X) u, with the rows x of the pass and other rows X, `block` of them at a time. */
struct kernel_cross_matvec {
    const struct kernel *kernel;
    const struct source *others;
    const double *u; /* [others->N] */
    int block;
    double *out; /* [N] */
};
struct sink kernel_cross_matvec_sink(const struct kernel_cross_matvec *self);
