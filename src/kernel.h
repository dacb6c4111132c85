#pragma once

/* A kernel is a sum of products of factors,
 *
 *     k(x, z) = sum_t variance_t prod_f g_f(x, z),
 *
 * where a factor g_f is a function of some inputs (factor.h). Several terms may share a factor and its parameters. */
#include "factor.h"
#include "strip.h"

/* A tile has KERNEL_TILE rows of Z and KERNEL_WIDE rows of X. Its kernel values fit into the level 1 cache. */
enum { KERNEL_TILE = 64, KERNEL_WIDE = 32 };

/* A warped input w(x) is piecewise linear, with this number of knots. */
enum { WARP_KNOTS = 65 };

struct term {
    double variance;
    int n_factors;
    const int *factor; /* [n_factors] numbers among the kernel's factors */
    int at;            /* place of the variance in theta */
};

struct kernel {
    int n_factors, n_terms;
    const struct factor *factor; /* [n_factors] */
    const struct term *term;     /* [n_terms] */
    int n_theta; /* number of log parameters; a term's factors come before its variance */
    int n_rotated; /* The factors read z = x B in place of the first n_rotated columns of x. */
    const double *rotation; /* B (n_rotated x n_rotated) */
    int n_warped; /* Without rotation: the factors read w_j(x_j) in the first n_warped columns. */
    const double *warp; /* [2 WARP_KNOTS n_warped] knots of x_j, then w_j there */
};

/* Sets the fields of k (with pointers to the factors and terms), and each parameter's place in the vector theta. */
void kernel_places(int n_factors, struct factor *factor, int n_terms, struct term *term,
                   struct kernel *k);

/* Returns one more than the last column that the kernel reads. */
int kernel_columns(const struct kernel *k);

/* Computes and returns Z, the rotated or warped inputs that the factors read in place of X (both n x columns). Entry
 * points call it, so the arguments X of all other functions are such inputs. Equal rows of X give equal rows of Z. */
const double *kernel_inputs(const struct kernel *k, int n, int columns, const double *X,
                            double *Z);

/* Computes K (M x n) = k(Z, X) for the M rows of Z and the n rows of X. */
void kernel_cross(const struct kernel *k, struct rows Z, struct rows X, double *K);

/* Computes diagonal[i] = k(x_i, x_i), bitwise equal to kernel_cross() if x_i has a level of each categorical factor. */
void kernel_diagonal(const struct kernel *k, struct rows X, double *diagonal);

/* Computes a term without its factor `skip` (-1: with all factors). Stores it in out (M x n) or, if `add`, adds it. */
void kernel_term(const struct kernel *k, const struct term *t, int skip, int add,
                 struct rows Z, struct rows X, double *out);

/* Computes the diagonal of kernel_term() for Z = X, of at most KERNEL_TILE rows. */
void kernel_term_diagonal(const struct kernel *k, const struct term *t, int skip,
                          struct rows X, double *out);

const struct factor *kernel_factor(const struct kernel *k, const struct term *t, int i);
/* Returns 1 if the kernel has one term with one factor, a function of r2 = sum_j ((x_j - z_j) / l_j)^2. */
int kernel_is_single(const struct kernel *k);
/* Copies the terms t, ..., t + n_terms - 1 to s for vector code (strip.h). Returns 0 if s cannot hold them, else 1. */
int kernel_strips(const struct kernel *k, const struct term *t, int n_terms,
                  struct strip_kernel *s);
/* Returns 1 if the kernel has one term and k(x, x) is constant. */
int kernel_is_constant(const struct kernel *k);

/* A Gaussian process with noise. Its variances are in the squared units of the rows' responses. */
struct model {
    const struct kernel *kernel;
    double s2; /* noise variance of a row with weight 1 */
};
