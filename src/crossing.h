#ifndef PFDTC_CROSSING_H
#define PFDTC_CROSSING_H

/*
 * Sums over all rows for certificates at a few new rows: with e_x = E(X, x), certify.h reads
 * h_x'e_x, e_x'B^{-1}e_x and |e_x|^2.  They take 4 N M n_new flops and N n_new kernel values, of
 * which one block is kept.
 */
#include "pass.h"
#include "posterior.h"

/* Computes them at the rows x; the pass is over the data.  Each result has x->n numbers. */
void crossing_run(const struct posterior *p, const struct block *x, struct pass *pass,
                  double *cross, double *gain, double *size);

#endif
