#ifndef PFDTC_CROSSING_H
#define PFDTC_CROSSING_H

/*
 * What all rows say of a few new ones beyond a posterior: e_x = E(X, x), of which certify.h wants
 * h_x'e_x, e_x'B^{-1}e_x and |e_x|^2.  4 N M n_new flops, and N n_new kernel values, of which a
 * block is kept.
 */
#include "pass.h"
#include "posterior.h"

/* at the rows x, those of the pass being the data: each [x->n] */
void crossing_run(const struct posterior *p, const struct block *x, struct pass *pass,
                  double *cross, double *gain, double *size);

#endif
