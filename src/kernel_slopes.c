#include <math.h>
#include "kernel_slopes.h"
#include "linalg.h"

/* Returns a direction's component along input j of a factor, or 0 if the factor has no derivative in this input. */
static double along(const struct factor *f, int j, const double *direction)
{
    const enum metric metric = f->profile->metric;
    const int smooth = factor_is_stationary(f) || metric == METRIC_PRODUCT ||
                       (metric == METRIC_GROUP && j > 0);
    return smooth ? direction[f->column[j]] : 0.0;
}

/* Returns 1 if the factor may have a derivative other than 0 along the direction. */
static int has_slope(const struct factor *f, const double *direction)
{
    for (int j = 0; j < f->d; j++)
        if (along(f, j, direction) != 0.0)
            return 1;
    return 0;
}

/* For a factor that is a function of s(z, x), adds share * w ds / dx_j to out (M x n), an entry for each z and x.
 * ds / dx_j is
 *     2 (x - z) / l^2 for a squared scaled distance s (lengthscale l),
 *     (2 turn / l^2) sin(turn (x - z)) for a periodic factor, turn = 2 pi / period,
 *     factor_input_slope() for an inner product and, at equal levels, for a group. */
static void add_slope(const struct factor *f, int j, double share, struct rows Z,
                      struct rows X, const double *w, double *out)
{
    const enum metric metric = f->profile->metric;
    const double *z = rows_column(Z, f->column[j]), *x = rows_column(X, f->column[j]),
                 *of_z = rows_column(Z, f->column[0]),
                 *of_x = rows_column(X, f->column[0]);
    for (int i = 0; i < X.n; i++)
        for (int m = 0; m < Z.n; m++, w++, out++)
            if (metric == METRIC_SCALED) { /* in this order nothing overflows if w = 0 */
                const double rate = fmin(factor_rate(f, j), 1e290);
                *out += share * (2.0 * (*w * ((x[i] - z[m]) * rate)) * rate);
            } else if (metric == METRIC_PERIODIC) {
                const double rate = fmin(factor_rate(f, 0), 1e145),
                             turn = 2.0 * PI / factor_period(f),
                             apart = remainder(x[i] - z[m], factor_period(f));
                *out += share * (2.0 * turn * (*w * sin(turn * apart) * rate * rate));
            } else if (metric != METRIC_GROUP || of_x[i] == of_z[m]) {
                *out += share * (*w * factor_input_slope(f, j, rows_from(Z, m, 1)));
            }
}

/* Returns d^2 s / (dx_j dx'_j) at x' = x, for a factor that is a function of s(x, x'). */
static double second_slope(const struct factor *f, int j)
{
    if (!factor_is_stationary(f))
        return factor_input_curvature(f, j);
    const int periodic = f->profile->metric == METRIC_PERIODIC;
    const double rate =
        (periodic ? 2.0 * PI / factor_period(f) : 1.0) * factor_rate(f, j);
    return -2.0 * rate * rate;
}

struct slopes {
    double values[KERNEL_TILE * KERNEL_WIDE], S[KERNEL_TILE * KERNEL_WIDE],
        w[KERNEL_TILE * KERNEL_WIDE], out[KERNEL_TILE * KERNEL_WIDE];
};

/* Adds to s->out a term's derivative in x through factor i: dg / dS dS / dx times the other factors, for the factor
 * g(S) and its argument S, such as a squared distance. */
static void add_factor(const struct kernel *k, const struct term *t, int i,
                       const double *direction, struct rows Z, struct rows X,
                       struct slopes *s)
{
    const struct factor *f = kernel_factor(k, t, i);
    const int size = Z.n * X.n;
    factor_argument(f, Z, X, s->S);
    if (factor_is_stationary(f)) {
        kernel_term(k, t, -1, 0, Z, X, s->values);
        f->profile->slope(size, factor_shape(f), s->values, s->S, s->w);
    } else {
        kernel_term(k, t, i, 0, Z, X, s->w);
        f->profile->value_slope(size, f->power, factor_shape(f), s->S);
        for (int a = 0; a < size; a++)
            s->w[a] *= s->S[a];
    }
    for (int j = 0; j < f->d; j++)
        if (along(f, j, direction) != 0.0)
            add_slope(f, j, along(f, j, direction), Z, X, s->w, s->out);
}

void kernel_slopes(const struct kernel *k, const double *direction, struct rows Z,
                   struct rows X, double *out)
{
    struct slopes s;
    for (int m = 0; m < Z.n; m += KERNEL_TILE)
        for (int a = 0; a < X.n; a += KERNEL_WIDE) {
            const struct rows some = rows_tile(Z, m, KERNEL_TILE),
                              rows = rows_tile(X, a, KERNEL_WIDE);
            fill((size_t)some.n * rows.n, 0.0, s.out);
            for (const struct term *t = k->term; t < k->term + k->n_terms; t++)
                for (int i = 0; i < t->n_factors; i++)
                    if (has_slope(kernel_factor(k, t, i), direction))
                        add_factor(k, t, i, direction, some, rows, &s);
            for (int b = 0; b < rows.n; b++)
                copy((size_t)some.n, s.out + (size_t)b * some.n,
                     out + (size_t)(a + b) * Z.n + m);
        }
}

/* This struct has the value g(x, x') of a factor, dg / dx and d^2 g / (dx dx') along a direction, at x' = x. */
struct jet {
    double value, slope, second;
};

static struct jet factor_jet(const struct factor *f, const double *direction,
                             struct rows x)
{
    const struct profile *profile = f->profile;
    const double *shape = factor_shape(f);
    struct jet g = {1.0, 0.0, 0.0};
    double s, slope, curvature, u = 0.0, second = 0.0; /* s(x, x') and its derivatives */
    for (int j = 0; j < f->d; j++) {
        const double share = along(f, j, direction);
        if (share == 0.0)
            continue;
        if (!factor_is_constant(f))
            u += share * factor_input_slope(f, j, x);
        second += share * share * second_slope(f, j);
    }
    if (!factor_is_constant(f)) {
        factor_self_argument(f, x, &s);
        slope = curvature = g.value = s;
        if (profile->value != NULL)
            profile->value(1, f->power, shape, &g.value);
        if (has_slope(f, direction)) {
            profile->value_slope(1, f->power, shape, &slope);
            if (profile->value_curvature == NULL)
                curvature = 0.0;
            else
                profile->value_curvature(1, f->power, shape, &curvature);
            g.slope = slope * u;
            g.second = slope * second + curvature * u * u;
        }
    } else if (has_slope(f, direction)) {
        const double one = 1.0, zero = 0.0;
        profile->slope(1, shape, &one, &zero, &slope);
        g.second = slope * second;
    }
    return g;
}

void kernel_slope_variance(const struct kernel *k, const double *direction, struct rows X,
                           double *prior, double *size)
{
    for (int i = 0; i < X.n; i++) {
        double sum = 0.0, roots = 0.0;
        for (const struct term *t = k->term; t < k->term + k->n_terms; t++) {
            struct jet all = {t->variance, 0.0, 0.0};
            double sds = 0.0; /* sum over factors of sqrt(g'' times the other factors) */
            for (int f = 0; f < t->n_factors; f++) {
                const struct jet g =
                    factor_jet(kernel_factor(k, t, f), direction, rows_from(X, i, 1));
                all.second = all.second * g.value + 2.0 * all.slope * g.slope +
                             all.value * g.second;
                all.slope = all.slope * g.value + all.value * g.slope;
                sds = sds * sqrt(g.value) + sqrt(all.value * g.second);
                all.value *= g.value;
            }
            sum += all.second;
            roots += sds;
        }
        prior[i] = sum;
        size[i] = fmax(roots * roots, sum);
    }
}
