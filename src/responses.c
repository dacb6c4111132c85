#include <math.h>
#include <stddef.h>
#include <string.h>
#include "responses.h"

/* log(1 + e^f) */
static double log_sum(double f)
{
    return (f > 0.0 ? f : 0.0) + log1p(exp(-fabs(f)));
}

/* binomial, p = 1 / (1 + e^-f): y f - m log(1 + e^f) */
static struct site_value logit(double f, double y, double m, const double *shape)
{
    (void)shape;
    const double e = exp(-fabs(f)), far = e / (1.0 + e), near = 1.0 / (1.0 + e);
    const double p = f > 0.0 ? near : far, q = f > 0.0 ? far : near;
    struct site_value v;
    /* success and failure apart: no cancellation where all or none are successes */
    v.l = f > 0.0 ? -(m - y) * f - m * log1p(e) : y * f - m * log_sum(f);
    v.g = y * q - (m - y) * p;
    v.W = m * p * q;
    v.l3 = -v.W * (q - p);
    return v;
}

static const double sqrt_half = 0.70710678118654752440,
                    log_root_2pi = 0.91893853320467274178;

/* One trial with success where z is large: r = phi / Phi.  Far below 0 r - x, x = -z, is the continued
 * fraction 1 / (x + 2 / (x + 3 / ...)), without the cancellation of r + z. */
static struct site_value trial(double z)
{
    struct site_value v;
    const double log_density = -0.5 * z * z - log_root_2pi;
    if (z > -5.0) {
        const double p = 0.5 * erfc(-z * sqrt_half), r = exp(log_density) / p;
        v.l = log(p);
        v.g = r;
        v.W = r * (r + z);
        v.l3 = r * ((z + r) * (z + 2.0 * r) - 1.0);
    } else {
        const double x = -z;
        double next = 0.0;
        for (int k = 60; k > 2; k--)
            next = 1.0 / (x + k * next);
        const double over = 1.0 / (x + 2.0 * next), r = x + over;
        v.l = log_density - log(r);
        v.g = r;
        v.W = r * over;
        v.l3 = 2.0 * r * over * (over - next);
    }
    return v;
}

/* binomial, p = Phi(f): y successes, m - y failures */
static struct site_value probit(double f, double y, double m, const double *shape)
{
    (void)shape;
    struct site_value v = {0.0, 0.0, 0.0, 0.0};
    if (y > 0.0) {
        const struct site_value t = trial(f);
        v = (struct site_value){y * t.l, y * t.g, y * t.W, y * t.l3};
    }
    if (y < m) {
        const struct site_value t = trial(-f);
        const double k = m - y;
        v.l += k * t.l;
        v.g -= k * t.g;
        v.W += k * t.W;
        v.l3 -= k * t.l3;
    }
    return v;
}

/* Poisson of mean e^f */
static struct site_value poisson(double f, double y, double size, const double *shape)
{
    const double mean = exp(f);
    (void)size;
    (void)shape;
    return (struct site_value){y * f - mean, y - mean, mean, -mean};
}

/* Student's t of nu degrees of freedom and scale s around f, a = nu s^2, r = y - f:
 * -(nu + 1) / 2 log(1 + r^2 / a).  As a function of r^2 it is convex: its tangent bounds it. */
static struct site_value student(double f, double y, double size, const double *shape)
{
    const double nu = shape[0], a = nu * shape[1] * shape[1], r = y - f, b = a + r * r;
    (void)size;
    struct site_value v;
    v.l = -0.5 * (nu + 1.0) * log1p(r * r / a);
    v.g = (nu + 1.0) * r / b;
    v.W = (nu + 1.0) * (a - r * r) / (b * b);
    v.l3 = -2.0 * (nu + 1.0) * r * (3.0 * a - r * r) / (b * b * b);
    return v;
}

static double student_majorant(double f, double y, const double *shape)
{
    const double nu = shape[0], r = y - f;
    return (nu + 1.0) / (nu * shape[1] * shape[1] + r * r);
}

static const struct response table[] = {{"logit", logit, NULL},
                                        {"probit", probit, NULL},
                                        {"log", poisson, NULL},
                                        {"student", student, student_majorant}};

const struct response *response_named(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(name, table[i].name) == 0)
            return table + i;
    return NULL;
}

struct site_value sites_at(const struct sites *s, int i, double f)
{
    struct site_value v = s->response->at(f + s->offset[i], s->y[i],
                                          s->size == NULL ? 1.0 : s->size[i], s->shape);
    if (s->weight != NULL) {
        v.l *= s->weight[i];
        v.g *= s->weight[i];
        v.W *= s->weight[i];
        v.l3 *= s->weight[i];
    }
    return v;
}

double sites_majorant(const struct sites *s, int i, double f)
{
    const double w = s->response->majorant(f + s->offset[i], s->y[i], s->shape);
    return s->weight == NULL ? w : w * s->weight[i];
}
