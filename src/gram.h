#pragma once

/* Computes kernel matrices of two blocks or of all rows, and products with these matrices. */
#include "pass.h"

/* Computes K_cb = k(X_c, X_b) for blocks b and c, rows and columns multiplied by the roots of the rows' weights. */
void pairs_kernel(const struct kernel *k, const struct block *b, const struct block *c,
                  double *K_cb);

/* Computes K_cb like pairs_kernel(), and adds P_c K_cb to out_b (m x n_b). P_c is m x n_c. */
void pairs_add(const struct kernel *k, const struct block *b, const struct block *c,
               int m, const double *P_c, double *K_cb, double *out_b);

/* For blocks b and c, adds k(X_b, X_c) p_c to out_b and, unless c is b, k(X_c, X_b) p_b to out_c. These four arrays
 * have m columns and the leading dimension ldp. work: pairs_both_size() doubles */
size_t pairs_both_size(int n_b, int n_c);
void pairs_add_both(const struct kernel *k, const struct block *b, const struct block *c,
                    int m, int ldp, const double *p_b, const double *p_c, double *work,
                    double *out_b, double *out_c);

/* Computes the residual prior covariance E_cb = K_cb - A_c'A_b (n_c x n_b) of blocks b and c, K_cb as in
 * pairs_kernel(). Roots of the rows' weights multiply the columns of A_b = L^{-1} k(Z, X_b). */
void pairs_unexplained(const struct kernel *k, const struct block *b,
                       const struct block *c, int M, const double *A_b, const double *A_c,
                       double *E_cb);

/* This sink computes out (n x N) = k(points, x) for n points and the rows x of the pass. */
struct kernel_matrix {
    const struct kernel *kernel;
    struct rows points;
    double *out;
};
struct sink kernel_matrix_sink(const struct kernel_matrix *self);

/* This sink computes K V, with K = k(X, X) for the rows X of the pass, whatever their weights. With shares > 1, it uses
 * only pairs of blocks b and c with (b + c) mod shares = `share`. The results of all shares add up to K V. */
struct kernel_matvecs {
    const struct kernel *kernel;
    const struct pass *pass;
    int m;
    const double *V; /* N x m */
    int share, shares;
};
struct sink kernel_matvecs_sink(const struct kernel_matvecs *self, double *KV);

/* This sink computes out = k(x, X) u, with the rows x of the pass and the rows X of `others`, in blocks of `block`. */
struct kernel_cross_matvec {
    const struct kernel *kernel;
    const struct source *others;
    const double *u; /* [others->N] */
    int block;
    double *out; /* [N] */
};
struct sink kernel_cross_matvec_sink(const struct kernel_cross_matvec *self);
