#include "self_slopes.h"
#include "linalg.h"

size_t term_slopes_size(int n)
{
    return 3 * (size_t)n * n;
}

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

static void stationary_slopes(const struct factor *f, int n, const double *X, int ldx,
                              const double *u, const struct matrices *p, double *out)
{
    const struct profile *profile = f->profile;
    const int nn = n * n, n_metric = factor_n_metric(f);
    if (profile->slope_reads_r2)
        factor_statistic(f, n, X, ldx, n, X, ldx, p->S);
    if (profile->n_shape > 0) {
        profile->shape_slope(nn, factor_shape(f), p->values, p->S, p->w);
        add_product(n, p->w, NULL, u, out + (size_t)(f->at + n_metric) * n);
    }
    profile->slope(nn, factor_shape(f), p->values, p->S, p->w);
    for (int j = 0; j < n_metric; j++) {
        factor_metric_slope(f, j, n, X, ldx, p->D);
        add_product(n, p->D, p->w, u, out + (size_t)(f->at + j) * n);
    }
}

/* slopes of the table's parameter p at each pair of rows */
static void table_slopes(const struct factor *f, int p, int n, const double *X, int ldx,
                         double *D)
{
    struct factor other = *f;
    other.table = f->table + (size_t)(p + 1) * f->d * f->d;
    factor_statistic(&other, n, X, ldx, n, X, ldx, D);
}

static void other_slopes(const struct kernel *k, const struct term *t, int i, int n,
                         const double *X, int ldx, const double *u,
                         const struct matrices *p, double *out)
{
    const struct factor *f = kernel_factor(k, t, i);
    if (f->n_parameters == 0)
        return;
    kernel_term(k, t, i, n, X, ldx, n, X, ldx, p->w);
    for (int j = 0; j < f->n_parameters; j++) {
        if (f->profile->metric == METRIC_LEVELS) {
            table_slopes(f, j, n, X, ldx, p->D);
        } else {
            factor_statistic(f, n, X, ldx, n, X, ldx, p->D);
            f->profile->value_shape_slope(n * n, f->power, factor_shape(f), p->D);
        }
        add_product(n, p->D, p->w, u, out + (size_t)(f->at + j) * n);
    }
}

void term_slopes(const struct kernel *k, const struct term *t, int n, const double *X,
                 int ldx, const double *values, const double *u, double *work,
                 double *out)
{
    const size_t nn = (size_t)n * n;
    const struct matrices p = {values, work, work + nn, work + 2 * nn};
    add_product(n, values, NULL, u, out + (size_t)t->at * n);
    for (int i = 0; i < t->n_factors; i++) {
        const struct factor *f = kernel_factor(k, t, i);
        if (factor_is_stationary(f))
            stationary_slopes(f, n, X, ldx, u, &p, out);
        else
            other_slopes(k, t, i, n, X, ldx, u, &p, out);
    }
}
