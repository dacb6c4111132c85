#pragma once

/* These functions compute Laplace's approximation for a response with K classes. softmax_rows.h defines the symbols. */
#include "softmax_rows.h"

/* Allocates l->sums and prepares l->mode and l->at. Before, the caller sets the fields z (with L), pass, K, q, y,
 * weight, center and contrasts, the pointers to the arrays of results and, unless it is FACTOR_NONE, factor. */
void softmax_open(struct softmax *l);
/* Moves the whitened inducing variables u to the mode of their posterior, by newton_run(). If l->factor is
 * FACTOR_EARLIER, the first steps use the Cholesky factor of an earlier Hessian. */
enum status softmax_mode(struct softmax *l, double enough, int maxit);
/* Returns sum log det(I + E_nn W_n) / 2 over rows n, which is subtracted from Laplace's log marginal likelihood. E_nn
 * is the residual prior variance, -W_n the Hessian of the log likelihood. Also computes l->s and l->zeta, which
 * softmax_gradient() reads, l->inverse (of the Hessian) and, in l->at, covariances S of phi and `left`, all E_nn. */
double softmax_penalty(struct softmax *l);
/* Computes the derivatives of Laplace's log marginal likelihood minus softmax_penalty() in the kernel's log parameters
 * [n_theta] and in the constant means of the classes [K]. */
void softmax_gradient(struct softmax *l, double *dtheta, double *dcenter);

/* This sink predicts mean and covariance S of phi, and residual prior variances, at new rows. The classes have the
 * latent functions f = C phi + b, with orthonormal contrasts C and constant means b. */
struct sink softmax_at_sink(const struct softmax_at *self);
