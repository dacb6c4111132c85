#pragma once

/* The kernel matrix of rows with others as a whole, and products with it. */
#include "pass.h"

/* The sink of out (n x N) = k(X, x) for n points X and the rows x of the pass. */
struct kernel_matrix {
    const struct kernel *kernel;
    struct block points;
    double *out;
};
struct sink kernel_matrix_sink(const struct kernel_matrix *self);

/* K V over all pairs of rows of the pass, without scales; with `shares` only over pairs of blocks b
 * and c with (b + c) mod `shares` = `share`.  The shares add up to K V. */
struct kernel_matvecs {
    const struct kernel *kernel;
    const struct pass *pass;
    int m;
    const double *V; /* N x m */
    int share, shares;
};
struct sink kernel_matvecs_sink(const struct kernel_matvecs *self, double *KV);

/* k(x, X) u for the rows x of the pass and other rows X, `block` of these at a time */
struct kernel_cross_matvec {
    const struct kernel *kernel;
    const struct source *others;
    const double *u; /* [others->N] */
    int block;
    double *out; /* by row */
};
struct sink kernel_cross_matvec_sink(const struct kernel_cross_matvec *self);
