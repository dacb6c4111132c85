#include <math.h>
#include "coordinates.h"

static int is_mean(const struct kernel *k, const struct term *t)
{
    return t->n_factors == 1 && factor_is_mean(kernel_factor(k, t, 0));
}

/* Returns a term's share in the prior variance without linear means: its variance, divided by the sum of the variances
 * of all terms that are not linear means. For a single term it is 1. */
static double share_of(const struct kernel *k, const struct term *t)
{
    double sum = 0.0;
    for (int i = 0; i < k->n_terms; i++)
        sum += is_mean(k, k->term + i) ? 0.0 : k->term[i].variance;
    return k->n_terms == 1 ? 1.0 : t->variance / sum;
}

/* Returns the average of -log(max(correlation, 1e-3)) over pairs of different levels of an R factor. */
static double apart(const struct factor *f)
{
    double sum = 0.0;
    for (int a = 0; a < f->d; a++)
        for (int b = 0; b < a; b++)
            sum -= log(fmax(f->table[(size_t)a * f->d + b], 1e-3));
    return f->d > 1 ? sum / (0.5 * f->d * (f->d - 1.0)) : 0.0;
}

static int add(struct coordinate *at, int n, int column, double rate, double period)
{
    for (int i = 0; i < n; i++)
        if (at[i].column == column && at[i].period == period) {
            at[i].rate = copysign(sqrt(at[i].rate * at[i].rate + rate * rate), rate);
            return n;
        }
    at[n] = (struct coordinate){.column = column, .rate = rate, .period = period};
    return n + 1;
}

static int add_factor(const struct factor *f, double share, struct coordinate *at, int n)
{
    const double *shape = factor_shape(f), root = sqrt(share);
    if (factor_is_mean(f))
        return n;
    for (int j = 0; j < f->d; j++)
        switch (f->profile->metric) {
        case METRIC_SCALED: /* the bound avoids Inf * 0 */
            n = add(at, n, f->column[j], fmin(root * factor_rate(f, j), 1e290), 0.0);
            break;
        case METRIC_PERIODIC: /* r2 is a squared chord of a circle with this radius */
            n = add(at, n, f->column[j], root * fmin(factor_rate(f, j), 1e145),
                    factor_period(f));
            n = add(at, n, f->column[j], root * fmin(factor_rate(f, j), 1e145),
                    -factor_period(f));
            break;
        case METRIC_PRODUCT: {
            const double slope =
                f->profile->n_shape ? f->power * pow(shape[0], f->power - 1) : 1.0;
            n = add(at, n, f->column[j], fmin(root * sqrt(slope), 1e290), 0.0);
            break;
        }
        case METRIC_LEVELS:
            n = add(at, n, f->column[j], root * sqrt(apart(f)), 0.0);
            break;
        default:
            break;
        }
    return n;
}

int kernel_n_coordinates(const struct kernel *k)
{
    int n = 0;
    for (int t = 0; t < k->n_terms; t++)
        for (int i = 0; i < k->term[t].n_factors; i++) {
            const struct factor *f = kernel_factor(k, k->term + t, i);
            n += f->profile->metric == METRIC_PERIODIC ? 2 * f->d : f->d;
        }
    return n;
}

int kernel_coordinates(const struct kernel *k, struct coordinate *at)
{
    int n = 0;
    for (int t = 0; t < k->n_terms; t++)
        for (int i = 0; i < k->term[t].n_factors; i++)
            n = add_factor(kernel_factor(k, k->term + t, i), share_of(k, k->term + t), at,
                           n);
    return n;
}
