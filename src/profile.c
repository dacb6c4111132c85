#include <math.h>
#include <stddef.h>
#include <string.h>
#include "profile.h"

/* ---- stationary: g = times exp(-exponent), and k g'/g -------------------------------- */

/* exp(-r2 / 2):  k' = -k / 2 */
static void se_split(int n, const double *shape, const double *r2, double *exponent,
                     double *times)
{
    (void)shape;
    (void)times;
    for (int i = 0; i < n; i++)
        exponent[i] += 0.5 * r2[i];
}

static void se_slope(int n, const double *shape, const double *k, const double *r2,
                     double *out)
{
    (void)shape;
    (void)r2;
    for (int i = 0; i < n; i++)
        out[i] = -0.5 * k[i];
}

/* exp(-a), a = sqrt(r2):  k' = -k / (2 a), 0 at the kink a = 0 */
static void matern12_split(int n, const double *shape, const double *r2, double *exponent,
                           double *times)
{
    (void)shape;
    (void)times;
    for (int i = 0; i < n; i++)
        exponent[i] += sqrt(r2[i]);
}

static void matern12_slope(int n, const double *shape, const double *k, const double *r2,
                           double *out)
{
    (void)shape;
    for (int i = 0; i < n; i++)
        out[i] = r2[i] > 0.0 ? -0.5 * k[i] / sqrt(r2[i]) : 0.0;
}

/* (1 + a) exp(-a), a = sqrt(3 r2):  k' = -3/2 k / (1 + a) */
static void matern32_split(int n, const double *shape, const double *r2, double *exponent,
                           double *times)
{
    (void)shape;
    for (int i = 0; i < n; i++) {
        const double a = sqrt(3.0 * r2[i]);
        exponent[i] += a;
        times[i] *= 1.0 + a;
    }
}

static void matern32_slope(int n, const double *shape, const double *k, const double *r2,
                           double *out)
{
    (void)shape;
    for (int i = 0; i < n; i++)
        out[i] = -1.5 * k[i] / (1.0 + sqrt(3.0 * r2[i]));
}

/* (1 + a + a^2/3) exp(-a), a = sqrt(5 r2):  k' = -5/6 (1 + a) k / (1 + a + a^2/3) */
static void matern52_split(int n, const double *shape, const double *r2, double *exponent,
                           double *times)
{
    (void)shape;
    for (int i = 0; i < n; i++) {
        const double a = sqrt(5.0 * r2[i]);
        exponent[i] += a;
        times[i] *= 1.0 + a + a * a / 3.0;
    }
}

static void matern52_slope(int n, const double *shape, const double *k, const double *r2,
                           double *out)
{
    (void)shape;
    for (int i = 0; i < n; i++) {
        const double a = sqrt(5.0 * r2[i]);
        out[i] =
            k[i] != 0.0 ? -(5.0 / 6.0) * (1.0 + a) * k[i] / (1.0 + a + a * a / 3.0) : 0.0;
    }
}

/* (1 + b)^-alpha, b = r2 / (2 alpha):  k' = -k / (2 (1 + b)),
 * dk / dlog alpha = alpha k (b / (1 + b) - log(1 + b)) */
static void rq_split(int n, const double *shape, const double *r2, double *exponent,
                     double *times)
{
    (void)times;
    for (int i = 0; i < n; i++)
        exponent[i] += shape[0] * log1p(r2[i] / (2.0 * shape[0]));
}

static void rq_slope(int n, const double *shape, const double *k, const double *r2,
                     double *out)
{
    for (int i = 0; i < n; i++)
        out[i] = -0.5 * k[i] / (1.0 + r2[i] / (2.0 * shape[0]));
}

static void rq_shape_slope(int n, const double *shape, const double *k, const double *r2,
                           double *out)
{
    for (int i = 0; i < n; i++) {
        const double b = r2[i] / (2.0 * shape[0]);
        out[i] = isfinite(b) ? shape[0] * k[i] * (b / (1.0 + b) - log1p(b)) : 0.0;
    }
}

/* ---- of s = x'z ------------------------------------------------------------------------ */

static void linear_value(int n, int power, const double *shape, double *s)
{
    (void)n;
    (void)power;
    (void)shape;
    (void)s;
}

static void linear_slope(int n, int power, const double *shape, double *s)
{
    (void)power;
    (void)shape;
    for (int i = 0; i < n; i++)
        s[i] = 1.0;
}

static double to_power(double x, int power)
{
    double out = 1.0;
    for (int i = 0; i < power; i++)
        out *= x;
    return out;
}

/* (s + offset)^power */
static void polynomial_value(int n, int power, const double *shape, double *s)
{
    for (int i = 0; i < n; i++)
        s[i] = to_power(s[i] + shape[0], power);
}

static void polynomial_slope(int n, int power, const double *shape, double *s)
{
    for (int i = 0; i < n; i++)
        s[i] = power * to_power(s[i] + shape[0], power - 1);
}

static void polynomial_offset_slope(int n, int power, const double *shape, double *s)
{
    for (int i = 0; i < n; i++)
        s[i] = shape[0] * power * to_power(s[i] + shape[0], power - 1);
}

/* 1 + s: a level and slopes */
static void mean_value(int n, int power, const double *shape, double *s)
{
    (void)power;
    (void)shape;
    for (int i = 0; i < n; i++)
        s[i] += 1.0;
}

/* ---- the table ------------------------------------------------------------------------- */

static const struct closed_form se = {1, 0.5, 0.0, 0.0}, matern12 = {0, 1.0, 0.0, 0.0},
                                matern32 = {0, 3.0, 1.0, 0.0},
                                matern52 = {0, 5.0, 1.0, 1.0 / 3.0};

static const struct profile profiles[] = {
    {"se", METRIC_SCALED, 0, &se, se_split, 0, se_slope, NULL, NULL, NULL, NULL},
    {"matern12", METRIC_SCALED, 0, &matern12, matern12_split, 1, matern12_slope, NULL,
     NULL, NULL, NULL},
    {"matern32", METRIC_SCALED, 0, &matern32, matern32_split, 1, matern32_slope, NULL,
     NULL, NULL, NULL},
    {"matern52", METRIC_SCALED, 0, &matern52, matern52_split, 1, matern52_slope, NULL,
     NULL, NULL, NULL},
    {"rq", METRIC_SCALED, 1, NULL, rq_split, 1, rq_slope, rq_shape_slope, NULL, NULL,
     NULL},
    {"periodic", METRIC_PERIODIC, 0, NULL, se_split, 0, se_slope, NULL, NULL, NULL, NULL},
    {"linear", METRIC_PRODUCT, 0, NULL, NULL, 0, NULL, NULL, linear_value, linear_slope,
     NULL},
    {"mean", METRIC_PRODUCT, 0, NULL, NULL, 0, NULL, NULL, mean_value, linear_slope,
     NULL},
    {"polynomial", METRIC_PRODUCT, 1, NULL, NULL, 0, NULL, NULL, polynomial_value,
     polynomial_slope, polynomial_offset_slope},
    {"categorical", METRIC_LEVELS, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL},
    {"white", METRIC_EQUALITY, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL},
    {"constant", METRIC_NOTHING, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL},
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
