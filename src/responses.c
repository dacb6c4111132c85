#include <math.h>
#include <stddef.h>
#include <string.h>
#include "responses.h"

/* log(1 + e^f) */
static double log_sum(double f)
{
    return (f > 0.0 ? f : 0.0) + log1p(exp(-fabs(f)));
}

/* of log odds f: y f - (y + n) log(1 + e^f), y successes, n failures */
static struct site_value odds(double f, double y, double n)
{
    const double e = exp(-fabs(f)), far = e / (1.0 + e), near = 1.0 / (1.0 + e);
    const double p = f > 0.0 ? near : far, q = f > 0.0 ? far : near;
    struct site_value v;
    /* success and failure have separate terms, so nothing cancels if all or none are successes */
    v.l = f > 0.0 ? -n * f - (y + n) * log1p(e) : y * f - (y + n) * log_sum(f);
    v.g = y * q - n * p;
    v.W = (y + n) * p * q;
    v.l3 = -v.W * (q - p);
    return v;
}

/* binomial, p = 1 / (1 + e^-f) */
static struct site_value logit(double f, double y, double m, const double *shape)
{
    (void)shape;
    return odds(f, y, m - y);
}

/* negative binomial of mean theta e^f */
static struct site_value nb(double f, double y, double theta, const double *shape)
{
    (void)shape;
    return odds(f, y, theta);
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
        v.l = z > 0.0 ? log1p(-0.5 * erfc(z * sqrt_half)) : log(p);
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

static struct site_value poisson_average(double f, double v, double y, double size,
                                         const double *shape)
{
    struct site_value a = poisson(f + 0.5 * v, y, size, shape);
    a.l -= 0.5 * y * v;
    a.l3 = 0.0;
    return a;
}

/* gamma of mean e^f and shape k */
static struct site_value gamma_at(double f, double y, double k, const double *shape)
{
    const double u = k * y * exp(-f);
    (void)shape;
    return (struct site_value){-u - k * f, u - k, u, u};
}

static struct site_value gamma_average(double f, double v, double y, double k,
                                       const double *shape)
{
    struct site_value a = gamma_at(f - 0.5 * v, y, k, shape);
    a.l -= 0.5 * k * v;
    a.l3 = 0.0;
    return a;
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

static const struct response table[] = {
    {"logit", logit, NULL, 3.14, NULL},
    {"probit", probit, NULL, 2.8, NULL}, /* Phi is 0 at +-1.92 +- 2.82 i */
    {"log", poisson, NULL, INFINITY, poisson_average},
    {"nb", nb, NULL, 3.14, NULL},
    {"gamma", gamma_at, NULL, INFINITY, gamma_average},
    {"student", student, student_majorant, 1.0, NULL}};

const struct response *response_named(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(name, table[i].name) == 0)
            return table + i;
    return NULL;
}

static struct site_value times(double w, struct site_value v)
{
    return (struct site_value){w * v.l, w * v.g, w * v.W, w * v.l3};
}

static struct site_value weighted(const struct sites *s, int i, struct site_value v)
{
    return s->weight == NULL ? v : times(s->weight[i], v);
}

static double size_of(const struct sites *s, int i)
{
    return s->size == NULL ? 1.0 : s->size[i];
}

struct site_value sites_at(const struct sites *s, int i, double f)
{
    return weighted(s, i,
                    s->response->at(f + s->offset[i], s->y[i], size_of(s, i), s->shape));
}

/* The trapezoid rule in units of the sd, as far as 8.5 of them: its error is no more than some
 * e^-30, e^(-2 pi^2 / h^2) where h is 1/2, and by every other term e^-15. */
static struct site_value average(const struct sites *s, int i, double f, double sd)
{
    const double strip =
        s->response->strip * (s->shape == NULL ? 1.0 : sqrt(s->shape[0]) * s->shape[1]);
    const double wanted = 0.2 * strip / sd, h = wanted < 0.5 ? wanted : 0.5;
    const int most = 5000, n = h * most > 8.5 ? 2 * (int)ceil(4.25 / h) : most;
    struct site_value sum = {0.0, 0.0, 0.0, 0.0};
    double mass = 0.0, mass_even = 0.0;
    for (int k = -n; k <= n; k++) {
        const double z = 8.5 * k / n, w = exp(-0.5 * z * z);
        const struct site_value at =
            s->response->at(f + sd * z, s->y[i], size_of(s, i), s->shape);
        mass += w;
        sum.l += w * at.l;
        sum.g += w * at.g;
        sum.W += w * at.W;
        if (k % 2 == 0) {
            mass_even += w;
            sum.l3 += w * at.l;
        }
    }
    sum.l3 = mass * sum.l3 / mass_even - sum.l;
    return times(1.0 / mass, sum);
}

struct site_value sites_average(const struct sites *s, int i, double f, double v)
{
    const double at = f + s->offset[i];
    return weighted(s, i,
                    s->response->average != NULL
                        ? s->response->average(at, v, s->y[i], size_of(s, i), s->shape)
                        : average(s, i, at, sqrt(v)));
}

double sites_majorant(const struct sites *s, int i, double f)
{
    const double w = s->response->majorant(f + s->offset[i], s->y[i], s->shape);
    return s->weight == NULL ? w : w * s->weight[i];
}
