#ifndef PFDTC_CROSSING_H
#define PFDTC_CROSSING_H

/*
 * What all rows say of a few new ones beyond a posterior: e_x = E(X, x), of which certify.h wants
 * h_x'e_x, e_x'B^{-1}e_x and |e_x|^2.  4 N M n_new flops, and N n_new kernel values, of which a
 * block is kept.
 */
#include "pass.h"
#include "posterior.h"

struct crossing_rows {
    const struct posterior *posterior;
    struct block rows_new;
    double *a; /* M x n_new: room for L^{-1} k(Z, x) */
};

/* sums over the rows, in `sums` */
size_t crossing_size(const struct crossing_rows *self);
/* makes a, then sums */
struct sink crossing_sink(const struct crossing_rows *self, double *sums);
/* of finished sums, overwritten: each [n_new] */
void crossing_finish(const struct crossing_rows *self, double *sums, double *cross,
                     double *gain, double *size);

#endif
