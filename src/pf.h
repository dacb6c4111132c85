#pragma once

/* d_pF is the preconditioned Fisher divergence of Huggins et al. (2019) between the DTC posterior and an auxiliary
 * distribution with covariance p k(x, x') + sum_j s_j b_j(x) b_j(x'), p = 0 or 1 and s_j = +-1. b_j has the values w_j
 * at the rows and L t_j at Z, and r_j = w_j. The sum below includes the mean as last b_j, with s_j = 1 and r_j = w_j -
 * y. The constant C(X) does not depend on Z.
 *
 *     s2^2 d_pF^2 - C(X) = sum_j s_j (-|A r_j|^2 + |D^{-1}(A w_j - G t_j)|^2)
 *                          + p (-tr W0 + tr(D^{-1} V D^{-1})),
 *     A = L^{-1} k(Z, X),  G = A A',  D = I + G / s2,  W0 = A k(X, X) A',  V = W0 - G^2 - G J G,
 *     J = L^{-1} diag(jitter k(z, z)) L^{-T} */
#include "stats.h"

/* Computes s2^2 times the squared preconditioned Fisher divergence, up to a constant, and, unless `adjoint` is NULL,
 * its derivatives in the sums s. T (M x q) has L^{-1} times the functions of aux at Z. If aux->p, reads W0 = A k(X, X)
 * A' (M x M), A = L^{-1} k(Z, X). */
enum status pf_evaluate(const struct inducing *z, const struct stats *s,
                        const struct lowrank *aux, const double *T, const double *W0,
                        struct arena *arena, double *value, struct adjoint *adjoint);

/* Computes sum_j s_j |D^{-1} u_j|^2 + p tr(D^{-1} (V - G J G) D^{-1}), a part of the divergence, for aux with the
 * covariance p k(x, x') + sum_j s_j b_j(x) b_j(x'), s_j = +-1. Column j of U (M x q) is u_j = A (w_j - A't_j), if b_j
 * is w_j at the rows and L t_j at Z. A is L^{-1} k(Z, X), G = A A', D = I + G / s2,
 * J = L^{-1} diag(jitter k(z, z)) L^{-T}. If aux->p, V = A (K - A'A) A' (M x M). U and V are overwritten. */
enum status pf_transfer(const struct inducing *z, const struct stats *s,
                        const struct lowrank *aux, double *U, double *V,
                        struct arena *arena, double *value);
