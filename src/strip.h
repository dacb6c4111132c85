#ifndef PFDTC_STRIP_H
#define PFDTC_STRIP_H

/*
 * A few rows against many: values of one stationary factor, and products with them, in the
 * vectors of the processor (at most `lanes` doubles wide).  The same processor gives the same
 * bits, in whatever strips; k(x, z) = k(z, x), and the variance itself where x = z.
 */
#include "profile.h"

enum { STRIP_ROWS = 4, STRIP_MOST_INPUTS = 64 };

/* k = variance times the form of r2 = sum_j ((x_j - z_j) rate_j)^2;  0 where exp is denormal */
struct strip_kernel {
    const struct closed_form *form;
    double variance;
    int d; /* at most STRIP_MOST_INPUTS */
    const int *column;
    const double *rate;
};

/* K (M x n) = k(Z, X) */
void strip_values(int lanes, const struct strip_kernel *k, int M, const double *Z,
                  int ldz, int n, const double *X, int ldx, double *K);

/* One strip, n from 1 to STRIP_ROWS:  out_x += K'p_z,  and with p_x (else NULL) out_z += K p_x.
 * K: M x n,  m vectors each, ldp apart. */
void strip_products(int lanes, int M, int n, const double *K, int m, int ldp,
                    const double *p_z, const double *p_x, double *out_z, double *out_x);

#endif
