#pragma once

/*
 * The preconditioned Fisher divergence of Huggins et al. (2019) between the DTC posterior and an auxiliary
 * distribution, times s2^2 and up to its constant C(X).  D = I + G / s2 (A, G: stats.h).  lowrank.h has p and the
 * sign s_j of function j, whose values are w_j at the rows and (whitened) t_j at Z.  r_j is w_j, minus y for the mean.
 *
 *     s2^2 d_pF^2 - C(X) = sum_j s_j (-|A r_j|^2 + |D^{-1}(A w_j - G t_j)|^2)
 *                          + p (-tr W0 + tr(D^{-1} V D^{-1}))
 *
 *     W0 = A K A',  V = W0 - G^2 - G J G,  J = L^{-1} diag(jitter k(z, z)) L^{-T}
 */
#include "stats.h"

/*
 * Computes s2^2 d_pF^2 - C(X) and, unless `adjoint` is NULL, the adjoints.  T (M x q) is L^{-1} [b(Z), mu(Z)].  W0 (M x
 * M) is read only if aux->p.
 */
enum status pf_evaluate(const struct inducing *z, const struct stats *s,
                        const struct lowrank *aux, const double *T, const double *W0,
                        struct arena *arena, double *value, struct adjoint *adjoint);

/* Computes terms (II) + (III) of divergence.h, sum_j s_j |D^{-1} u_j|^2 + p tr(D^{-1} (V - G J G) D^{-1}), from U (M
 * x q) = A (W_x - A'T) and, if aux->p, V (M x M) = A E A'. U and V are overwritten. */
enum status pf_transfer(const struct inducing *z, const struct stats *s,
                        const struct lowrank *aux, double *U, double *V,
                        struct arena *arena, double *value);
