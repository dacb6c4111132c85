#include <math.h>
#include "coordinates.h"

/* Is the term a linear mean? Its variance is vague, and it does not change which rows are near. */
static int is_mean(const struct kernel *k, const struct term *t)
{
    return t->n_factors == 1 && factor_is_mean(k->factor + t->factor[0]);
}

/* Returns the share of a term in the prior variance; terms that are not stationary are taken at x'z = 1. */
static double share_of(const struct kernel *k, const struct term *t)
{
    double sum = 0.0;
    for (int i = 0; i < k->n_terms; i++)
        sum += is_mean(k, k->term + i) ? 0.0 : k->term[i].variance;
    return k->n_terms == 1 ? 1.0 : t->variance / sum;
}

/* Returns the mean of -log of the correlation of two different levels. */
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
            at[i].rate = sqrt(at[i].rate * at[i].rate + rate * rate);
            return n;
        }
    at[n].column = column;
    at[n].rate = rate;
    at[n].period = period;
    return n + 1;
}

static int add_factor(const struct factor *f, double share, struct coordinate *at, int n)
{
    const double *shape = factor_shape(f), root = sqrt(share);
    if (factor_is_mean(f))
        return n;
    for (int j = 0; j < f->d; j++)
        switch (f->profile->metric) {
        case METRIC_SCALED: /* never Inf * 0 */
            n = add(at, n, f->column[j], fmin(root * factor_rate(f, j), 1e290), 0.0);
            break;
        case METRIC_PERIODIC: /* the radius that has these chords */
            n = add(at, n, f->column[j], root * fmin(factor_rate(f, j), 1e145),
                    f->parameter[1]);
            n = add(at, n, f->column[j], root * fmin(factor_rate(f, j), 1e145),
                    -f->parameter[1]);
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
            const struct factor *f = k->factor + k->term[t].factor[i];
            n += f->profile->metric == METRIC_PERIODIC ? 2 * f->d : f->d;
        }
    return n;
}

int kernel_coordinates(const struct kernel *k, struct coordinate *at)
{
    int n = 0;
    for (int t = 0; t < k->n_terms; t++)
        for (int i = 0; i < k->term[t].n_factors; i++)
            n = add_factor(k->factor + k->term[t].factor[i], share_of(k, k->term + t), at,
                           n);
    return n;
}

double coordinate_of(const struct coordinate *at, double x, double centre)
{
    if (at->period == 0.0)
        return (x - centre) * at->rate;
    const double turns = x / fabs(at->period),
                 angle = 2.0 * 3.14159265358979323846 * (turns - floor(turns));
    return at->rate * (at->period > 0.0 ? cos(angle) : sin(angle));
}
