#pragma once

/*
 * The functions of a factor of a kernel, a row of the table in profile.c each: the metric (the
 * statistic that it is a function of), its value and its slopes.  A stationary kernel is
 *
 *     g(r2) = times(r2) exp(-exponent(r2)),   g(0) = 1,
 *
 * so that a product of several needs one exp for an entry.  It is 0 only by underflow, so its slope
 * follows from the whole product k as k g'/g.  Other kernels have plain functions.
 */
/*
 * METRIC_SCALED reads a column with the numbers of levels as it reads their 0/1 columns: different
 * levels are LEVELS_APART lengthscales apart.  Such a column has a negative rate, and slopes of 0.
 */
#define LEVELS_APART 1.4142135623730951

enum metric {
    METRIC_SCALED, /* r2 = sum_j ((x_j - z_j) / l_j)^2, lengthscales (or one for all) */
    METRIC_PERIODIC, /* r2 = sum_j (2 sin(pi (x_j - z_j) / period) / l)^2, l and the period */
    METRIC_PRODUCT,  /* s = sum_j x_j z_j */
    METRIC_LEVELS,   /* a table of correlations between levels, coded as 0/1 columns */
    METRIC_GROUP,    /* u(x)' S u(z) where both rows have the same level, else 0 */
    METRIC_EQUALITY, /* 1 where all inputs are equal, 0 elsewhere */
    METRIC_NOTHING   /* 1 */
};

/* k = (1 + p1 a + p2 a^2) exp(-a),  a = sqrt(c r2), or c r2 where `squared` */
struct closed_form {
    int squared;
    double c, p1, p2;
};

struct profile {
    const char *name;
    enum metric metric;
    int n_shape; /* number of positive parameters, which follow the parameters of the metric */
    const struct closed_form *closed; /* the closed form for strip.h, or NULL */
    /* stationary, n entries: exponent += ., times *= . */
    void (*split)(int n, const double *shape, const double *r2, double *exponent,
                  double *times);
    int slope_reads_r2; /* slope and, where there is one, shape_slope */
    void (*slope)(int n, const double *shape, const double *k, const double *r2,
                  double *out); /* dk / dr2 */
    void (*shape_slope)(int n, const double *shape, const double *k, const double *r2,
                        double *out); /* dk / dlog shape */
    /* of s, in place: g(s) (NULL: s itself), dg / ds, dg / dlog shape */
    void (*value)(int n, int power, const double *shape, double *s);
    void (*value_slope)(int n, int power, const double *shape, double *s);
    void (*value_curvature)(int n, int power, const double *shape,
                            double *s); /* d^2g / ds^2 (NULL: 0) */
    void (*value_shape_slope)(int n, int power, const double *shape, double *s);
};

/* The profile of that name ("se", "matern12", ...), or NULL; the i-th, or NULL. */
const struct profile *profile_of(const char *name);
const struct profile *profile_at(int i);
