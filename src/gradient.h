#ifndef PFDTC_GRADIENT_H
#define PFDTC_GRADIENT_H

/* The second pass, one block at a time: adjoints meet the block.  The same for every
 * objective. */
#include "stats.h"

/* Kmx_bar (M x n) = (H A + F W_x' + f e' + E A K) diag(scale), e = y - A'beta.
 * Wt (q x n) is read if q > 0, AK (M x n) if adjoint->E.  Returns |e|^2.  scratch: n */
double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar);

#endif
