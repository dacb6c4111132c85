#pragma once

/* A factor of a kernel is a function of one number, its argument, which is computed from two rows. The kind of argument
 * is the metric, such as a squared scaled distance r2 or a product x'z. Each row of the table in profile.c is a
 * profile: a metric, the function and its derivatives. A stationary profile is
 *
 *     g(r2) = times(r2) exp(-exponent(r2)),   g(0) = 1,
 *
 * so a product of several factors needs only one call of exp(). g is 0 only by underflow, so a product k of stationary
 * factors has the derivative k g'/g in the r2 of one factor. In names, a slope is a derivative.
 *
 * METRIC_SCALED reads a column with level numbers as if it were the 0/1 columns of these levels: different levels are
 * LEVELS_APART apart, before division by the lengthscale. Such a column has the rate -1 / lengthscale, and Z has no
 * gradient in it. */
#define LEVELS_APART 1.4142135623730951

enum metric {
    METRIC_SCALED,   /* r2 = sum_j ((x_j - z_j) / l_j)^2; all l_j may be equal */
    METRIC_PERIODIC, /* r2 = sum_j (2 sin(pi (x_j - z_j) / p) / l)^2; parameters l, p */
    METRIC_PRODUCT,  /* s = sum_j x_j z_j */
    METRIC_LEVELS,   /* the correlation of the levels of x and z, coded as 0/1 columns */
    METRIC_GROUP,    /* u(x)' S u(z) at equal levels, else 0; u: design, S: covariance */
    METRIC_EQUALITY  /* 1 if all inputs are equal (or there are none), else 0 */
};

/* For a squared distance r2, k = (1 + p1 a + p2 a^2) exp(-a), where a is c r2 if `squared`, else sqrt(c r2). */
struct closed_form {
    int squared;
    double c, p1, p2;
};

struct profile {
    const char *name;
    enum metric metric;
    int n_shape; /* number of shape parameters, which follow the metric's parameters */
    /* form for the vectorised code of strip.h, or NULL */
    const struct closed_form *closed;
    /* The next functions are for stationary profiles T exp(-E). split() adds E to exponent, multiplies times by T. */
    void (*split)(int n, const double *shape, const double *r2, double *exponent,
                  double *times);
    int slope_reads_r2; /* 1 if slope() and shape_slope() read r2 */
    void (*slope)(int n, const double *shape, const double *k, const double *r2,
                  double *out); /* dk / dr2 */
    void (*shape_slope)(int n, const double *shape, const double *k, const double *r2,
                        double *out); /* dk / dlog shape */
    /* The next functions are for profiles g(s) that are not stationary. They replace n arguments s by g, dg / ds, d^2g
     * / ds^2 and dg / dlog shape. If value is NULL, g(s) = s; if value_curvature is NULL, d^2g / ds^2 = 0. */
    void (*value)(int n, int power, const double *shape, double *s);
    void (*value_slope)(int n, int power, const double *shape, double *s);
    void (*value_curvature)(int n, int power, const double *shape, double *s);
    void (*value_shape_slope)(int n, int power, const double *shape, double *s);
};

/* Returns the profile with a name ("se", "matern12", ...), or NULL. */
const struct profile *profile_of(const char *name);
/* Returns profile i of the table, or NULL if there are fewer. */
const struct profile *profile_at(int i);
