#pragma once

/*
 * Kernel values of a few rows with many, and products with them, in the vectors of the processor (at
 * most `lanes` doubles wide).  The kernel is a sum of products of stationary factors, with one
 * exponential for a term.  On one processor the bits do not depend on the strip that a row is in;
 * k(x, z) = k(z, x), and k(x, x) is the variance.
 */
#include "profile.h"
#include "block.h"

enum { STRIP_ROWS = 4, STRIP_MOST_INPUTS = 512, STRIP_MOST_FACTORS = 64 };

/* A factor is a closed form of r2 = sum_j ((x_j - z_j) rate_j)^2 over its d inputs. */
struct strip_factor {
    const struct closed_form *form;
    int d;
};

struct strip_term {
    double variance;
    int n_factors; /* at least one */
};

/* k = sum over terms of variance times factors; a term is 0 where its exp is denormal.  The arrays
 * of factors and inputs follow the order of the terms. */
struct strip_kernel {
    int n_terms, d; /* inputs of all factors: at most STRIP_MOST_INPUTS */
    const struct strip_term *term;
    const struct strip_factor *factor;
    const int *column;  /* [d] */
    const double *rate; /* [d] negative for numbers of levels (profile.h) */
};

/* K (M x n) = k(Z, X) of the M rows Z and the n rows X */
void strip_values(int lanes, const struct strip_kernel *k, struct rows Z, struct rows X,
                  double *K);

/* One strip, n from 1 to STRIP_ROWS:  out_x += K'p_z,  and with p_x (else NULL) out_z += K p_x.
 * K: M x n,  m vectors each, ldp apart. */
void strip_products(int lanes, int M, int n, const double *K, int m, int ldp,
                    const double *p_z, const double *p_x, double *out_z, double *out_x);

/* out = times exp(-exponent), 0 where exp(-exponent) is denormal.  The arrays have room for a multiple of 8 numbers,
 * which are read and written. */
void strip_finish(int lanes, int n, const double *exponent, const double *times,
                  double *out);
