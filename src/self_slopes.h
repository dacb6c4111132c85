#pragma once

/* Slopes of the kernel matrix of a few rows in the log parameters of a term, times a vector. */
#include "kernel.h"

/* Returns the doubles of scratch for n rows. */
size_t term_slopes_size(int n);

/* out (n x n_theta) += dK / dtheta_j u,  values (n x n): K, the term's own at X and X */
void term_slopes(const struct kernel *k, const struct term *t, struct rows X,
                 const double *values, const double *u, double *work, double *out);
