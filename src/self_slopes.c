#include <math.h>
#include "self_slopes.h"
#include "factor_pull.h"
#include "linalg.h"
#include "simd.h"

size_t term_slopes_size(int n)
{
    return 3 * (size_t)n * n;
}

/* ---- a term of one stationary factor with lengthscales: by halves ------------------------- */

/* out += t u_b and, by symmetry, row b of out += t'u,  t_a = w_a ((x_a - x_b) / l)^2 */
INSIDE double slope_column(int n, double rate, double xb, const double *restrict x,
                           const double *restrict w, double ub, const double *restrict u,
                           double *restrict out)
{
    double sum = 0.0;
    SIMD_SUM
    for (int a = 0; a < n; a++) {
        const double v = (x[a] - xb) * rate, t = w[a] * v * v;
        out[a] += t * ub;
        sum += t * u[a];
    }
    return sum;
}

/* Does the same for a column with the numbers of levels. */
static double level_column(int n, double rate, double xb, const double *restrict x,
                           const double *restrict w, double ub, const double *restrict u,
                           double *restrict out)
{
    const double v = LEVELS_APART * rate;
    double sum = 0.0;
    for (int a = 0; a < n; a++) {
        const double t = x[a] != xb ? w[a] * v * v : 0.0;
        out[a] += t * ub;
        sum += t * u[a];
    }
    return sum;
}

static void symmetric_column(int n, const double *Kb, const double *u, double *out)
{
    out[0] += Kb[-1] * u[0] + dot((size_t)n, Kb, u + 1);
    add_scaled((size_t)n, u[0], Kb, out + 1);
}

/* K: the kernel matrix of this term alone, lower triangle; work: 2 n */
CLONES static void single_slopes(const struct term *term, const struct factor *f,
                                 struct rows X, const double *K, const double *u,
                                 double *work, double *out)
{
    const struct profile *profile = f->profile;
    const int n = X.n;
    double *w = work, *r2 = work + n;
    for (int b = 0; b < n; b++) { /* the rows below b, and by symmetry those beside it */
        const int below = n - b - 1;
        const double *Kb = K + (size_t)b * n + b + 1;
        if (profile->slope_reads_r2)
            factor_statistic(f, rows_from(X, b + 1, below), rows_from(X, b, 1), r2);
        if (profile->n_shape > 0) {
            double *o = out + (size_t)(f->at + factor_n_metric(f)) * n + b;
            profile->shape_slope(below, factor_shape(f), Kb, r2, w);
            o[0] += dot((size_t)below, w, u + b + 1);
            add_scaled((size_t)below, u[b], w, o + 1);
        }
        profile->slope(below, factor_shape(f), Kb, r2, w);
        for (int a = 0; a < below; a++)
            w[a] *= -2.0; /* d r2 / d log l = -2 ((x_a - x_b) / l)^2 */
        for (int j = 0; j < f->d; j++) {
            const double *x = rows_column(X, f->column[j]) + b,
                         rate = fmin(factor_rate(f, j), 1e290);
            double *o = out + (size_t)(f->at + (f->isotropic ? 0 : j)) * n + b;
            o[0] +=
                rate < 0.0
                    ? level_column(below, rate, x[0], x + 1, w, u[b], u + b + 1, o + 1)
                    : slope_column(below, rate, x[0], x + 1, w, u[b], u + b + 1, o + 1);
        }
        symmetric_column(below, Kb, u + b, out + (size_t)term->at * n + b);
    }
}

/* ---- any other: whole matrices -------------------------------------------------------------- */

/* out += (D o by) u; by NULL: D u */
static void add_product(int n, const double *D, const double *by, const double *u,
                        double *out)
{
    for (int b = 0; b < n; b++)
        for (int a = 0; a < n; a++) {
            const size_t i = (size_t)b * n + a;
            const double weight = by == NULL ? 1.0 : by[i];
            if (weight != 0.0) /* beside what is 0 a slope may be infinite */
                out[a] += D[i] * weight * u[b];
        }
}

struct matrices {
    const double *values;
    double *S, *w, *D; /* n x n each */
};

static void stationary_slopes(const struct factor *f, struct rows X, const double *u,
                              const struct matrices *p, double *out)
{
    const struct profile *profile = f->profile;
    const int n = X.n, nn = n * n, n_metric = factor_n_metric(f);
    if (profile->slope_reads_r2)
        factor_statistic(f, X, X, p->S);
    if (profile->n_shape > 0) {
        profile->shape_slope(nn, factor_shape(f), p->values, p->S, p->w);
        add_product(n, p->w, NULL, u, out + (size_t)(f->at + n_metric) * n);
    }
    profile->slope(nn, factor_shape(f), p->values, p->S, p->w);
    for (int j = 0; j < n_metric; j++) {
        factor_metric_slope(f, j, X, p->D);
        add_product(n, p->D, p->w, u, out + (size_t)(f->at + j) * n);
    }
}

static void other_slopes(const struct kernel *k, const struct term *t, int i,
                         struct rows X, const double *u, const struct matrices *p,
                         double *out)
{
    const struct factor *f = kernel_factor(k, t, i);
    const int n = X.n;
    if (f->n_parameters == 0)
        return;
    kernel_term(k, t, i, 0, X, X, p->w);
    for (int j = 0; j < f->n_parameters; j++) {
        if (factor_has_levels(f)) {
            const struct factor slope = factor_table_slope(f, j);
            factor_statistic(&slope, X, X, p->D);
        } else {
            factor_statistic(f, X, X, p->D);
            f->profile->value_shape_slope(n * n, f->power, factor_shape(f), p->D);
        }
        add_product(n, p->D, p->w, u, out + (size_t)(f->at + j) * n);
    }
}

void term_slopes(const struct kernel *k, const struct term *t, struct rows X,
                 const double *values, const double *u, double *work, double *out)
{
    const int n = X.n;
    const size_t nn = (size_t)n * n;
    const struct matrices p = {values, work, work + nn, work + 2 * nn};
    if (t->n_factors == 1 && kernel_factor(k, t, 0)->profile->metric == METRIC_SCALED) {
        single_slopes(t, kernel_factor(k, t, 0), X, values, u, work, out);
        return;
    }
    add_product(n, values, NULL, u, out + (size_t)t->at * n);
    for (int i = 0; i < t->n_factors; i++) {
        const struct factor *f = kernel_factor(k, t, i);
        if (factor_is_stationary(f))
            stationary_slopes(f, X, u, &p, out);
        else
            other_slopes(k, t, i, X, u, &p, out);
    }
}
