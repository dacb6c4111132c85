#pragma once

/*
 * A factor of a kernel is a profile of some inputs: a function of one statistic of two rows.  The statistic
 * is computed for many pairs of rows at a time.  Values and slopes are then computed entry by entry.
 *
 * Distances are sums of squared differences, taken before they are divided by the lengthscales,
 * never |x|^2 + |z|^2 - 2 x'z: equal rows have distance exactly 0, inputs around 1e8 keep their
 * digits.  Periodic distances are chords of a circle, without a sine for every pair.
 */
#include "levels.h"
#include "profile.h"
#include "block.h"

struct factor {
    const struct profile *profile;
    int d; /* number of inputs that it reads; of METRIC_LEVELS, the levels; of METRIC_GROUP, the level's
            * number, then the design */
    const int *column;  /* [d] their columns in X, from 0 */
    const int *number;  /* [d] 1 for a column with the numbers of levels; or NULL */
    int isotropic;      /* METRIC_SCALED: one lengthscale for all inputs */
    int power;          /* of a polynomial; METRIC_GROUP: 1 with an intercept, else 0 */
    enum levels levels; /* METRIC_LEVELS: which correlations */
    int n_parameters;
    const double *parameter; /* [n_parameters] all positive */
    const double *table; /* METRIC_LEVELS, METRIC_GROUP: correlations (covariances), then
                          * their slope in each log parameter;
                          * METRIC_PRODUCT: a centre and a rate for each input, or NULL */
    int at;              /* place of its first parameter in theta */
};

int factor_is_stationary(const struct factor *f);
/* Returns 1 if k(x, x) = 1. */
int factor_is_constant(const struct factor *f);
/* Returns 1 if the factor has a table with slopes. */
int factor_has_levels(const struct factor *f);
/* Returns the number of rows of that table: of the levels, or of the effects of one level. */
int factor_table_rows(const struct factor *f);
/* Sets the factor's table by its parameters.  work: rows x rows; table: n_parameters + 1 times as much */
void factor_fill_table(struct factor *f, double *work, double *table);
/* Returns 1 for a linear mean, whose vague variance must not decide which rows are near. */
int factor_is_mean(const struct factor *f);
/* METRIC_PRODUCT and METRIC_GROUP (column j of the design): d s(x, z) / d z_j at one row x, where the rows have the same
 * level, and its slope in x_j */
double factor_input_slope(const struct factor *f, int j, struct rows x);
double factor_input_curvature(const struct factor *f, int j);
/* Computes dg / dlog of own parameter j of a factor that is not stationary, for all pairs (M x n). */
void factor_own_slope(const struct factor *f, int j, struct rows Z, struct rows X,
                      double *out);
/* Computes the same for each row with itself. */
void factor_own_self_slope(const struct factor *f, int j, struct rows X, double *out);
/* Returns the factor's shape parameters, which follow those of the metric. */
const double *factor_shape(const struct factor *f);

/* METRIC_PERIODIC: its period; the place of x on a circle of that circumference */
double factor_period(const struct factor *f);
void factor_on_circle(double x, double period, double *c, double *s);
/* The number of points that are mapped to a circle at a time. */
enum { FACTOR_ARC = 64 };

/* Returns 1 / lengthscale of input j, which is finite, or its negative for a column with numbers of levels. */
double factor_rate(const struct factor *f, int j);

/* Computes S (M x n), the statistic of each row of Z with each row of X. */
void factor_statistic(const struct factor *f, struct rows Z, struct rows X, double *S);
/* Computes s [n], the statistic of each row with itself. */
void factor_self_statistic(const struct factor *f, struct rows X, double *s);

/* For n entries adds to `exponent` and multiplies `times`.  S of a factor that is not stationary is overwritten.
 * Returns 1 if the factor has an exponent. */
int factor_split(const struct factor *f, size_t n, double *S, double *exponent,
                 double *times);

/* Computes the levels [n] of rows, from 0, or -1 if no column is 1. */
void factor_levels(const struct factor *f, struct rows X, int *level);

int factor_n_metric(const struct factor *f);
