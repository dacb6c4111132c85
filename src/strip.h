#ifndef PFDTC_STRIP_H
#define PFDTC_STRIP_H

/*
 * A few rows against many: values of sums of products of stationary factors, with one exponential
 * a term, and products with them, in the
 * vectors of the processor (at most `lanes` doubles wide).  The same processor gives the same
 * bits, in whatever strips; k(x, z) = k(z, x), and the variance itself where x = z.
 */
#include "profile.h"

enum { STRIP_ROWS = 4, STRIP_MOST_INPUTS = 512, STRIP_MOST_FACTORS = 64 };

/* the form of r2 = sum_j ((x_j - z_j) rate_j)^2 over so many inputs */
struct strip_factor {
    const struct closed_form *form;
    int d;
};

struct strip_term {
    double variance;
    int n_factors; /* at least one */
};

/* k = sum over terms of variance times factors; a term is 0 where its exp is denormal.  Factors
 * and their inputs stand one behind the other, a term's after those of the one before. */
struct strip_kernel {
    int n_terms, d; /* inputs of all factors: at most STRIP_MOST_INPUTS */
    const struct strip_term *term;
    const struct strip_factor *factor;
    const int *column;  /* [d] */
    const double *rate; /* [d] */
};

/* K (M x n) = k(Z, X) */
void strip_values(int lanes, const struct strip_kernel *k, int M, const double *Z,
                  int ldz, int n, const double *X, int ldx, double *K);

/* One strip, n from 1 to STRIP_ROWS:  out_x += K'p_z,  and with p_x (else NULL) out_z += K p_x.
 * K: M x n,  m vectors each, ldp apart. */
void strip_products(int lanes, int M, int n, const double *K, int m, int ldp,
                    const double *p_z, const double *p_x, double *out_z, double *out_x);

#endif
