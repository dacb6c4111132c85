#pragma once

/* Finds the mode of the posterior in softmax_rows.h, and its log marginal likelihood. */
#include "softmax_rows.h"

/* The caller sets z (with L), pass, K, q, the responses and the arrays for rows and inducing points. */
void softmax_open(struct softmax *l);
/* Moves u to the mode, by newton_run().  If `factor` is FACTOR_EARLIER, the first steps use the factor in C. */
enum status softmax_mode(struct softmax *l, double enough, int maxit);
/* Computes inverse, left, S, s and zeta, and returns sum log det(I + E W) / 2. */
double softmax_penalty(struct softmax *l);
/* Computes the derivatives of F in the kernel's log parameters [n_theta] and in b [K]. */
void softmax_gradient(struct softmax *l, double *dtheta, double *dcenter);

/* A sink that computes mean, S and left at new rows. */
struct sink softmax_at_sink(const struct softmax_at *self);
