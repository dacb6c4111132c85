#include <float.h>
#include <math.h>
#include "factor.h"
#include "simd.h"

int factor_is_stationary(const struct factor *f)
{
    return f->profile->metric == METRIC_SCALED || f->profile->metric == METRIC_PERIODIC;
}

int factor_is_constant(const struct factor *f)
{
    return f->profile->metric != METRIC_PRODUCT &&
           (f->profile->metric != METRIC_GROUP || (f->d == 1 && f->power == 1));
}

int factor_has_levels(const struct factor *f)
{
    return f->profile->metric == METRIC_LEVELS || f->profile->metric == METRIC_GROUP;
}

int factor_table_rows(const struct factor *f)
{
    return f->profile->metric == METRIC_GROUP ? f->d - 1 + f->power : f->d;
}

void factor_fill_table(struct factor *f, double *work, double *table)
{
    const int rows = factor_table_rows(f);
    if (f->profile->metric == METRIC_GROUP)
        levels_covariance(f->levels, rows, f->parameter, work, table);
    else
        levels_table(f->levels, rows, f->parameter, work, table);
    f->table = table;
}

int factor_is_mean(const struct factor *f)
{
    return f->profile->metric == METRIC_PRODUCT && f->table != NULL;
}

/* Returns input j of a METRIC_PRODUCT factor. A linear mean has a table of centres and scales; others use x itself. */
static double product_input(const struct factor *f, int j, double x)
{
    return f->table == NULL ? x : (x - f->table[j]) * f->table[f->d + j];
}

int factor_n_metric(const struct factor *f)
{
    switch (f->profile->metric) {
    case METRIC_SCALED:
        return f->isotropic ? 1 : f->d;
    case METRIC_PERIODIC:
        return 2;
    default:
        return 0;
    }
}

const double *factor_shape(const struct factor *f)
{
    return f->parameter + factor_n_metric(f);
}

/* Returns 1 / lengthscale of input j, negative for level numbers. It is finite, so that its product with 0 is 0. */
double factor_rate(const struct factor *f, int j)
{
    const int single = f->isotropic || f->profile->metric == METRIC_PERIODIC;
    const double rate = fmin(1.0 / f->parameter[single ? 0 : j], DBL_MAX);
    return f->number != NULL && f->number[j] ? -rate : rate;
}

double factor_period(const struct factor *f)
{
    return f->parameter[1];
}

static void add_levels_apart(int M, double rate, double x, const double *restrict z,
                             double *restrict r2)
{
    const double u = LEVELS_APART * rate, apart = u * u;
    for (int m = 0; m < M; m++)
        r2[m] += z[m] != x ? apart : 0.0;
}

CLONES static void squared_distances(const struct factor *f, const struct rows *Z,
                                     const struct rows *x, double *restrict r2)
{
    const int M = Z->n;
    for (int m = 0; m < M; m++)
        r2[m] = 0.0;
    for (int j = 0; j < f->d; j++) {
        const double *restrict z = rows_column(*Z, f->column[j]);
        const double xj = *rows_column(*x, f->column[j]), rate = factor_rate(f, j);
        if (rate < 0.0) {
            add_levels_apart(M, rate, xj, z, r2);
            continue;
        }
        SIMD
        for (int m = 0; m < M; m++) {
            const double u = (xj - z[m]) * rate;
            r2[m] += u * u;
        }
    }
}

/* Computes cos and sin of 2 pi x / period. remainder() has no rounding error, so both are accurate for any x. */
void factor_on_circle(double x, double period, double *c, double *s)
{
    const double angle = 2.0 * PI * (remainder(x, period) / period);
    *c = cos(angle);
    *s = sin(angle);
}

/* Computes S, sums over inputs of (rate |exp(ia) - exp(ib)|)^2 for angles a = 2 pi x / period, b = 2 pi z / period. */
static void squared_chords(const struct factor *f, struct rows Z, struct rows X,
                           double *restrict S)
{
    const double rate = factor_rate(f, 0), period = factor_period(f);
    const int M = Z.n, n = X.n;
    double c[FACTOR_ARC], s[FACTOR_ARC];
    for (size_t i = 0; i < (size_t)M * n; i++)
        S[i] = 0.0;
    for (int j = 0; j < f->d; j++)
        for (int first = 0; first < M; first += FACTOR_ARC) {
            const int some = min_int(M - first, FACTOR_ARC);
            const double *z = rows_column(Z, f->column[j]) + first,
                         *x = rows_column(X, f->column[j]);
            for (int m = 0; m < some; m++)
                factor_on_circle(z[m], period, c + m, s + m);
            for (int i = 0; i < n; i++) {
                double *restrict out = S + (size_t)i * M + first, cx, sx;
                factor_on_circle(x[i], period, &cx, &sx);
                SIMD
                for (int m = 0; m < some; m++) {
                    const double u = (cx - c[m]) * rate, v = (sx - s[m]) * rate;
                    out[m] += u * u + v * v;
                }
            }
        }
}

static void products(const struct factor *f, const struct rows *Z, const struct rows *x,
                     double *restrict s)
{
    for (int m = 0; m < Z->n; m++)
        s[m] = 0.0;
    for (int j = 0; j < f->d; j++) {
        const double *restrict z = rows_column(*Z, f->column[j]);
        const double xj = product_input(f, j, *rows_column(*x, f->column[j]));
        const double centre = f->table == NULL ? 0.0 : f->table[j],
                     rate = f->table == NULL ? 1.0 : f->table[f->d + j];
        SIMD
        for (int m = 0; m < Z->n; m++)
            s[m] += xj * ((z[m] - centre) * rate);
    }
}

static void equalities(const struct factor *f, const struct rows *Z, const struct rows *x,
                       double *restrict s)
{
    for (int m = 0; m < Z->n; m++)
        s[m] = 1.0;
    for (int j = 0; j < f->d; j++) {
        const double *restrict z = rows_column(*Z, f->column[j]);
        const double xj = *rows_column(*x, f->column[j]);
        for (int m = 0; m < Z->n; m++)
            s[m] = xj == z[m] ? s[m] : 0.0;
    }
}

void factor_levels(const struct factor *f, struct rows X, int *level)
{
    for (int i = 0; i < X.n; i++)
        level[i] = -1;
    for (int j = 0; j < f->d; j++) {
        const double *x = rows_column(X, f->column[j]);
        for (int i = 0; i < X.n; i++)
            if (x[i] > 0.5)
                level[i] = j;
    }
}

/* Computes S, the correlations of the rows' levels. A row without a level (-1) has correlation 0 with every row. */
static void correlations(const struct factor *f, struct rows Z, struct rows X, double *S)
{
    int of_z[FACTOR_ARC], of_x;
    for (int first = 0; first < Z.n; first += FACTOR_ARC) {
        const int some = min_int(Z.n - first, FACTOR_ARC);
        factor_levels(f, rows_from(Z, first, some), of_z);
        for (int i = 0; i < X.n; i++) {
            double *out = S + (size_t)i * Z.n + first;
            factor_levels(f, rows_from(X, i, 1), &of_x);
            for (int m = 0; m < some; m++)
                out[m] = of_x < 0 || of_z[m] < 0
                             ? 0.0
                             : f->table[(size_t)of_x * f->d + of_z[m]];
        }
    }
}

/* Returns element a of the design vector u of a row: 1 for the intercept, or an input. */
static double effect_of(const struct factor *f, int a, const struct rows *x)
{
    return a < f->power ? 1.0 : *rows_column(*x, f->column[a - f->power + 1]);
}

double factor_input_slope(const struct factor *f, int j, struct rows x)
{
    if (f->profile->metric == METRIC_PRODUCT)
        return product_input(f, j, *rows_column(x, f->column[j])) *
               (f->table == NULL ? 1.0 : f->table[f->d + j]);
    const int p = factor_table_rows(f);
    const double *row = f->table + (size_t)(j - 1 + f->power) * p;
    double sum = 0.0;
    for (int a = 0; a < p; a++)
        sum += row[a] * effect_of(f, a, &x);
    return sum;
}

double factor_input_curvature(const struct factor *f, int j)
{
    if (f->profile->metric == METRIC_GROUP)
        return f->table[(size_t)(j - 1 + f->power) * (factor_table_rows(f) + 1)];
    const double rate = f->table == NULL ? 1.0 : f->table[f->d + j];
    return rate * rate;
}

/* Returns u(x)' S u(z) for the design vectors u of two rows and the covariance S of the random effects, in f->table. */
static double effects_product(const struct factor *f, const struct rows *x,
                              const struct rows *z)
{
    const int p = factor_table_rows(f);
    double sum = 0.0;
    for (int b = 0; b < p; b++) {
        const double xb = effect_of(f, b, x), zb = effect_of(f, b, z);
        const double *row = f->table + (size_t)b * p;
        for (int a = 0; a < b; a++) /* gives u(z)' S u(x) the same bits */
            sum += row[a] * (effect_of(f, a, x) * zb + xb * effect_of(f, a, z));
        sum += row[b] * (xb * zb);
    }
    return sum;
}

static void group_effects(const struct factor *f, const struct rows *Z,
                          const struct rows *x, double *restrict s)
{
    const double *level = rows_column(*Z, f->column[0]);
    const double own = *rows_column(*x, f->column[0]);
    for (int m = 0; m < Z->n; m++)
        s[m] = level[m] == own
                   ? effects_product(f, x, &(struct rows){1, Z->X + m, Z->ldx})
                   : 0.0;
}

void factor_argument(const struct factor *f, struct rows Z, struct rows X, double *S)
{
    const enum metric metric = f->profile->metric;
    if (metric == METRIC_PERIODIC)
        squared_chords(f, Z, X, S);
    if (metric == METRIC_LEVELS)
        correlations(f, Z, X, S);
    for (int i = 0; i < X.n; i++, S += Z.n) {
        const struct rows x = rows_from(X, i, 1);
        if (metric == METRIC_SCALED)
            squared_distances(f, &Z, &x, S);
        if (metric == METRIC_PRODUCT)
            products(f, &Z, &x, S);
        if (metric == METRIC_GROUP)
            group_effects(f, &Z, &x, S);
        if (metric == METRIC_EQUALITY)
            equalities(f, &Z, &x, S);
    }
}

void factor_self_argument(const struct factor *f, struct rows X, double *s)
{
    for (int i = 0; i < X.n; i++)
        factor_argument(f, rows_from(X, i, 1), rows_from(X, i, 1), s + i);
}

void factor_own_slope(const struct factor *f, int j, struct rows Z, struct rows X,
                      double *out)
{
    struct factor other = *f;
    const size_t rows = (size_t)factor_table_rows(f);
    if (factor_has_levels(f)) /* then `other` has the derivative of the table */
        other.table = f->table + (size_t)(j + 1) * rows * rows;
    factor_argument(&other, Z, X, out);
    if (!factor_has_levels(f))
        f->profile->value_shape_slope(Z.n * X.n, f->power, factor_shape(f), out);
}

int factor_split(const struct factor *f, size_t n, double *S, double *exponent,
                 double *times)
{
    if (factor_is_stationary(f)) {
        f->profile->split((int)n, factor_shape(f), S, exponent, times);
        return 1;
    }
    if (f->profile->value != NULL)
        f->profile->value((int)n, f->power, factor_shape(f), S);
    for (size_t i = 0; i < n; i++)
        times[i] *= S[i];
    return 0;
}
