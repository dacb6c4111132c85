#pragma once

/* Products with the N x N kernel matrix, by pairs of row blocks. */
#include <stddef.h>
#include "block.h"
#include "kernel.h"

size_t pairs_size(int n_b, int n_c);

/* K_cb = k(X_c, X_b) with the blocks' scales on both sides;  out_b (m x n_b) += P_c K_cb for a
 * panel P_c (m x n_c) over the rows of block c */
void pairs_add(const struct kernel *k, const struct block *b, const struct block *c,
               int m, const double *P_c, double *work, double *out_b);

/* Both products of a pair, without scales: out_b += K_cb'p_c and, if c is not b, out_c += K_cb p_b.
 * m vectors each, with leading dimension ldp. */
size_t pairs_both_size(int n_b, int n_c);
void pairs_add_both(const struct kernel *k, const struct block *b, const struct block *c,
                    int m, int ldp, const double *p_b, const double *p_c, double *work,
                    double *out_b, double *out_c);

/* E_cb (n_c x n_b) = K_cb - A_c'A_b, with the same scales in K and in A (M x n_b, M x n_c) */
void pairs_unexplained(const struct kernel *k, const struct block *b,
                       const struct block *c, int M, const double *A_b, const double *A_c,
                       double *E_cb);

/* sum of K_cb^2, with the same scales */
double pairs_sum_squares(const struct kernel *k, const struct block *b,
                         const struct block *c, double *work);
