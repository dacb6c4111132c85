#pragma once

/* A factor of a kernel is a function (its profile, profile.h) of one number, its argument, such as the squared distance
 * of two rows. Arguments are computed for many pairs of rows at a time, then values and derivatives entry by entry.
 *
 * A squared distance is a sum of squares of (x_j - z_j) / l_j, never |x|^2 + |z|^2 - 2 x'z. So equal rows have
 * distance exactly 0, and inputs around 1e8 keep their digits. Periodic distances are computed from points on a
 * circle, with one sine for each row instead of each pair of rows. */
#include "levels.h"
#include "profile.h"
#include "block.h"

struct factor {
    const struct profile *profile;
    int d; /* number of inputs; levels (METRIC_LEVELS); 1 + design columns (METRIC_GROUP) */
    const int *column;  /* columns of the inputs in X [d], from 0 */
    const int *number;  /* [d] 1 for a column with level numbers, else 0; or NULL */
    int isotropic;      /* METRIC_SCALED: 1 if all inputs have one lengthscale */
    int power;          /* exponent of a polynomial; METRIC_GROUP: 1 with an intercept */
    enum levels levels; /* METRIC_LEVELS: kind of correlations */
    int n_parameters;
    const double *parameter; /* parameters, all positive [n_parameters] */
    /* METRIC_LEVELS: correlations, METRIC_GROUP: covariances, each followed by its derivatives in the log parameters;
     * METRIC_PRODUCT: the centres of all inputs, then their rates (input = (x - centre) rate); or NULL */
    const double *table;
    int at; /* place of its first parameter in the kernel's theta */
};

int factor_is_stationary(const struct factor *f);
/* Returns 1 if the factor g has g(x, x) = 1 for every row x. */
int factor_is_constant(const struct factor *f);
/* Returns 1 for METRIC_LEVELS and METRIC_GROUP, whose table has a matrix and its derivatives. */
int factor_has_levels(const struct factor *f);
/* Returns the rows of each matrix in f->table: the number of levels, or of effects of one level (METRIC_GROUP). */
int factor_table_rows(const struct factor *f);
/* Fills `table` with the correlations or covariances, then their derivatives in each log parameter. work: one matrix */
void factor_fill_table(struct factor *f, double *work, double *table);
/* Returns 1 for a linear mean. Its large prior variance must not decide which rows are neighbours. */
int factor_is_mean(const struct factor *f);
/* If the factor is a function of s(x, z), such as s = x'z, these return d s / d z_j, which depends on x only, and
 * d^2 s / (d x_j d z_j). Both are for METRIC_PRODUCT, and for METRIC_GROUP if both rows have the same level. */
double factor_input_slope(const struct factor *f, int j, struct rows x);
double factor_input_curvature(const struct factor *f, int j);
/* Computes the derivative in log parameter j of a factor that is not stationary, for all pairs of rows (M x n). */
void factor_own_slope(const struct factor *f, int j, struct rows Z, struct rows X,
                      double *out);
/* Returns the parameters of the profile, which follow the lengthscales and the period in f->parameter. */
const double *factor_shape(const struct factor *f);

/* METRIC_PERIODIC: return the period, and compute the point (c, s) on the unit circle at the angle 2 pi x / period. */
double factor_period(const struct factor *f);
void factor_on_circle(double x, double period, double *c, double *s);
/* The largest number of rows whose points on the unit circle (METRIC_PERIODIC) or levels are in memory at a time. */
enum { FACTOR_ARC = 64 };

/* Returns 1 / lengthscale of input j, at most DBL_MAX, with a minus sign if input j has level numbers. */
double factor_rate(const struct factor *f, int j);

/* Computes S (M x n), of which the factor is a function: squared distances, or products such as x'z, of all pairs. */
void factor_argument(const struct factor *f, struct rows Z, struct rows X, double *S);
/* Computes s [n], of which the factor is a function: for each row x with itself a squared distance, or x'x. */
void factor_self_argument(const struct factor *f, struct rows X, double *s);

/* Multiplies the n numbers times * exp(-exponent) by the factor's values at S, squared distances or products x'z. For a
 * stationary factor, changes `exponent` and `times`, returns 1. For any other, changes `times` and S, and returns 0. */
int factor_split(const struct factor *f, size_t n, double *S, double *exponent,
                 double *times);

/* Computes the level of each row [n], from 0: the place of the 1 among the factor's 0/1 columns, or -1 if all are 0. */
void factor_levels(const struct factor *f, struct rows X, int *level);

/* Returns the factor's number of lengthscales and periods. */
int factor_n_metric(const struct factor *f);
