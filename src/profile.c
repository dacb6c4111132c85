#include <math.h>
#include <stddef.h>
#include <string.h>
#include "profile.h"

/* Defines the functions of a stationary kernel k = times * exp(-exponent) by formulas in the squared scaled distance
 * r2, in a (computed from r2) and in the parameter shape[0]. slope_of_k is dk / dr2, and may also contain k. */
#define STATIONARY(name, a_of_r2, exponent_of_a, times_of_a, slope_of_k)                 \
    static void name##_split(int n, const double *shape, const double *r2s,              \
                             double *exponent, double *times)                            \
    {                                                                                    \
        (void)shape;                                                                     \
        for (int i = 0; i < n; i++) {                                                    \
            const double r2 = r2s[i], a = a_of_r2;                                       \
            exponent[i] += exponent_of_a;                                                \
            times[i] *= times_of_a;                                                      \
        }                                                                                \
    }                                                                                    \
    static void name##_slope(int n, const double *shape, const double *ks,               \
                             const double *r2s, double *out)                             \
    {                                                                                    \
        (void)shape;                                                                     \
        for (int i = 0; i < n; i++) {                                                    \
            const double k = ks[i], r2 = r2s[i], a = a_of_r2;                            \
            (void)a;                                                                     \
            out[i] = slope_of_k;                                                         \
        }                                                                                \
    }

STATIONARY(se, r2, 0.5 * a, 1.0, -0.5 * k)

/* At distance 0, the derivative of this kernel in the squared distance r2 is infinite, and is set to 0. */
STATIONARY(matern12, sqrt(r2), a, 1.0, r2 > 0.0 ? -0.5 * k / a : 0.0)

STATIONARY(matern32, sqrt(3.0 * r2), a, 1.0 + a, -1.5 * k / (1.0 + a))

STATIONARY(matern52, sqrt(5.0 * r2), a, 1.0 + a + a * a / 3.0,
           k != 0.0 ? -(5.0 / 6.0) * (1.0 + a) * k / (1.0 + a + a * a / 3.0) : 0.0)

/* rational quadratic kernel: k = (1 + a)^-alpha, a = r2 / (2 alpha), r2: squared scaled distance, alpha = shape[0] */
STATIONARY(rq, r2 / (2.0 * shape[0]), shape[0] * log1p(a), 1.0, -0.5 * k / (1.0 + a))
static void rq_shape_slope(int n, const double *shape, const double *k, const double *r2,
                           double *out)
{
    for (int i = 0; i < n; i++) {
        const double a = r2[i] / (2.0 * shape[0]);
        out[i] = isfinite(a) ? shape[0] * k[i] * (a / (1.0 + a) - log1p(a)) : 0.0;
    }
}

static double to_power(double x, int power)
{
    double out = 1.0;
    for (int i = 0; i < power; i++)
        out *= x;
    return out;
}

/* Defines a function that replaces each product s = x'z by a formula in s (named x there), `power` and shape. */
#define OF_PRODUCT(name, formula)                                                        \
    static void name(int n, int power, const double *shape, double *s)                   \
    {                                                                                    \
        (void)power, (void)shape;                                                        \
        for (int i = 0; i < n; i++) {                                                    \
            const double x = s[i];                                                       \
            (void)x;                                                                     \
            s[i] = formula;                                                              \
        }                                                                                \
    }

OF_PRODUCT(linear_slope, 1.0)

/* The kernel of a linear mean with an intercept is 1 plus the inner product of two rows, here x. */
OF_PRODUCT(mean_value, x + 1.0)

/* polynomial kernel: (x + offset)^power for the inner product x of two rows,  offset = shape[0] */
OF_PRODUCT(polynomial_value, to_power(x + shape[0], power))
OF_PRODUCT(polynomial_slope, to_power(x + shape[0], power - 1) * power)
OF_PRODUCT(polynomial_curvature,
           to_power(x + shape[0], power - 2) * (power * (power - 1)))
OF_PRODUCT(polynomial_offset_slope, shape[0] * power * to_power(x + shape[0], power - 1))

static const struct closed_form se = {1, 0.5, 0.0, 0.0}, matern12 = {0, 1.0, 0.0, 0.0},
                                matern32 = {0, 3.0, 1.0, 0.0},
                                matern52 = {0, 5.0, 1.0, 1.0 / 3.0};

static const struct profile profiles[] = {
    {"se", METRIC_SCALED, .closed = &se, .split = se_split, .slope = se_slope},
    {"matern12", METRIC_SCALED, .closed = &matern12, .split = matern12_split,
     .slope_reads_r2 = 1, .slope = matern12_slope},
    {"matern32", METRIC_SCALED, .closed = &matern32, .split = matern32_split,
     .slope_reads_r2 = 1, .slope = matern32_slope},
    {"matern52", METRIC_SCALED, .closed = &matern52, .split = matern52_split,
     .slope_reads_r2 = 1, .slope = matern52_slope},
    {"rq", METRIC_SCALED, .n_shape = 1, .split = rq_split, .slope_reads_r2 = 1,
     .slope = rq_slope, .shape_slope = rq_shape_slope},
    {"periodic", METRIC_PERIODIC, .split = se_split, .slope = se_slope},
    {"linear", METRIC_PRODUCT, .value_slope = linear_slope},
    {"mean", METRIC_PRODUCT, .value = mean_value, .value_slope = linear_slope},
    {"polynomial", METRIC_PRODUCT, .n_shape = 1, .value = polynomial_value,
     .value_slope = polynomial_slope, .value_curvature = polynomial_curvature,
     .value_shape_slope = polynomial_offset_slope},
    {.name = "categorical", .metric = METRIC_LEVELS},
    {"group", METRIC_GROUP, .value_slope = linear_slope},
    {.name = "white", .metric = METRIC_EQUALITY},
    {.name = "constant", .metric = METRIC_EQUALITY}, /* without inputs */
};

enum { N_PROFILES = sizeof profiles / sizeof profiles[0] };

const struct profile *profile_at(int i)
{
    return i >= 0 && i < N_PROFILES ? profiles + i : NULL;
}

const struct profile *profile_of(const char *name)
{
    for (int i = 0; i < N_PROFILES; i++)
        if (strcmp(profiles[i].name, name) == 0)
            return profiles + i;
    return NULL;
}
