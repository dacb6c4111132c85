#pragma once

/* Kernel matrices between a strip (at most STRIP_ROWS rows) and many other rows, and their products with vectors, are
 * computed in processor vectors of at most `lanes` doubles. The kernel is a sum of products of stationary factors, with
 * one exponential for each term. On a given CPU, the bits of a kernel value do not depend on the strip; k(x, z) = k(z,
 * x), and k(x, x) is the sum of the terms' variances. */
#include "profile.h"
#include "block.h"

enum { STRIP_ROWS = 4, STRIP_MOST_INPUTS = 512, STRIP_MOST_FACTORS = 64 };

/* A factor is a closed form (profile.h) of r2 = sum_j ((x_j - z_j) rate_j)^2 over its d inputs. */
struct strip_factor {
    const struct closed_form *form;
    int d;
};

struct strip_term {
    double variance;
    int n_factors; /* at least one */
};

/* A kernel is a sum over terms of a variance times factors, polynomials times exp(-exponent). If a term's exponents add
 * up to 708 or more, the term is 0, as exp(-708) is almost subnormal. Factors and inputs are in the order of terms. */
struct strip_kernel {
    int n_terms, n_factors, d; /* d: inputs of all factors */
    struct strip_term term[STRIP_MOST_FACTORS];
    struct strip_factor factor[STRIP_MOST_FACTORS];
    int column[STRIP_MOST_INPUTS]; /* columns of the inputs [d] */
    /* 1 / lengthscale [d], or -1 / lengthscale for level numbers: different levels are sqrt(2) apart, before division
     * by the lengthscale */
    double rate[STRIP_MOST_INPUTS];
};

/* Computes K (M x n) = k(Z, X) for the M rows of Z and the n rows of X. */
void strip_values(int lanes, const struct strip_kernel *k, struct rows Z, struct rows X,
                  double *K);

/* Multiplies one strip K (M x n, n from 1 to STRIP_ROWS) with m vectors:  out_x += K'p_z and, unless p_x is NULL,
 * out_z += K p_x.  In each p and out, vectors begin ldp numbers apart. */
void strip_products(int lanes, int M, int n, const double *K, int m, int ldp,
                    const double *p_z, const double *p_x, double *out_z, double *out_x);

/* Computes out = times exp(-exponent), or 0 if exponent >= 708. Arrays have room up to the next multiple of 8. */
void strip_finish(int lanes, int n, const double *exponent, const double *times,
                  double *out);
