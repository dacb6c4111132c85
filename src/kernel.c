#include "kernel.h"
#include "linalg.h"

/* Arrays of TILE_SIZE numbers hold a tile and 8 more numbers, because a vector may end beyond the tile. */
enum { TILE_SIZE = KERNEL_TILE * KERNEL_WIDE + 8 };

struct tile {
    double argument[TILE_SIZE], exponent[TILE_SIZE], times[TILE_SIZE];
};

void kernel_places(int n_factors, struct factor *factor, int n_terms, struct term *term,
                   struct kernel *k)
{
    k->n_factors = n_factors;
    k->n_terms = n_terms;
    k->factor = factor;
    k->term = term;
    k->n_theta = 0;
    k->n_rotated = k->n_warped = 0;
    for (int f = 0; f < n_factors; f++)
        factor[f].at = -1;
    for (int t = 0; t < n_terms; t++) {
        for (int i = 0; i < term[t].n_factors; i++) {
            struct factor *f = factor + term[t].factor[i];
            if (f->at < 0) {
                f->at = k->n_theta;
                k->n_theta += f->n_parameters;
            }
        }
        term[t].at = k->n_theta++;
    }
}

int kernel_columns(const struct kernel *k)
{
    int columns = k->n_rotated > k->n_warped ? k->n_rotated : k->n_warped;
    for (int f = 0; f < k->n_factors; f++)
        for (int j = 0; j < k->factor[f].d; j++)
            if (k->factor[f].column[j] >= columns)
                columns = k->factor[f].column[j] + 1;
    return columns;
}

/* Returns w(x), the piecewise linear function through the knots (at, to), whose end pieces extend to infinity. */
static double warped(const double *at, double x)
{
    const double *to = at + WARP_KNOTS;
    int i = 0;
    while (i < WARP_KNOTS - 2 && x > at[i + 1])
        i++;
    return to[i] + (x - at[i]) * ((to[i + 1] - to[i]) / (at[i + 1] - at[i]));
}

const double *kernel_inputs(const struct kernel *k, int n, int columns, const double *X,
                            double *Z)
{
    const int d = k->n_rotated;
    const size_t rows = (size_t)n;
    copy(rows * (size_t)columns, X, Z);
    fill(rows * (size_t)d, 0.0, Z);
    for (int c = 0; c < d; c++)
        for (int j = 0; j < d; j++) {
            const double *x = X + rows * (size_t)j, times = k->rotation[c * d + j];
            double *z = Z + rows * (size_t)c;
            for (int i = 0; i < n && times != 0.0; i++)
                z[i] += x[i] * times;
        }
    for (int c = 0; c < k->n_warped; c++)
        for (size_t i = rows * (size_t)c; i < rows * (size_t)(c + 1); i++)
            Z[i] = warped(k->warp + 2 * WARP_KNOTS * c, X[i]);
    return Z;
}

int kernel_is_constant(const struct kernel *k)
{
    for (int f = 0; f < k->n_factors; f++)
        if (!factor_is_constant(k->factor + f))
            return 0;
    return k->n_terms == 1;
}

const struct factor *kernel_factor(const struct kernel *k, const struct term *t, int i)
{
    return k->factor + t->factor[i];
}

/* Returns 1 for a variance times one METRIC_SCALED factor: its derivatives need no kernel values but its own. */
int kernel_is_single(const struct kernel *k)
{
    return k->n_terms == 1 && k->term->n_factors == 1 &&
           kernel_factor(k, k->term, 0)->profile->metric == METRIC_SCALED;
}

/* Adds a factor to the vectorised kernel s. Returns 0 if the factor has no closed form or s has no room for it. */
static int strips_factor(struct strip_kernel *s, const struct factor *f)
{
    if (f->profile->closed == NULL || s->n_factors == STRIP_MOST_FACTORS ||
        s->d + f->d > STRIP_MOST_INPUTS)
        return 0;
    s->factor[s->n_factors++] = (struct strip_factor){f->profile->closed, f->d};
    for (int j = 0; j < f->d; j++, s->d++) {
        s->column[s->d] = f->column[j];
        s->rate[s->d] = factor_rate(f, j);
    }
    return 1;
}

int kernel_strips(const struct kernel *k, const struct term *t, int n_terms,
                  struct strip_kernel *s)
{
    s->n_terms = n_terms;
    s->n_factors = s->d = 0;
    for (int i = 0; i < n_terms; i++, t++) {
        if (i == STRIP_MOST_FACTORS || t->n_factors == 0)
            return 0;
        s->term[i] = (struct strip_term){t->variance, t->n_factors};
        for (int j = 0; j < t->n_factors; j++)
            if (!strips_factor(s, kernel_factor(k, t, j)))
                return 0;
    }
    return 1;
}

/* Computes K (M x n), the sum of n_terms terms from t on, by vectorised code. Returns 0 if there is none. */
static int strips_of_terms(const struct kernel *k, const struct term *t, int n_terms,
                           struct rows Z, struct rows X, double *K)
{
    struct strip_kernel s;
    if (!kernel_strips(k, t, n_terms, &s))
        return 0;
    strip_values(linalg_lanes(), &s, Z, X, K);
    return 1;
}

/* Computes a term without its factor `skip` (-1: with all factors) for a tile, in w->argument. */
static void term_tile(const struct kernel *k, const struct term *t, int skip,
                      struct rows Z, struct rows X, struct tile *w)
{
    if (skip < 0 && strips_of_terms(k, t, 1, Z, X, w->argument))
        return;
    const size_t size = (size_t)Z.n * X.n;
    int stationary = 0;
    fill(size + 8, 0.0, w->exponent);
    fill(size + 8, t->variance, w->times);
    for (int i = 0; i < t->n_factors; i++)
        if (i != skip) {
            const struct factor *f = kernel_factor(k, t, i);
            factor_argument(f, Z, X, w->argument);
            stationary |= factor_split(f, size, w->argument, w->exponent, w->times);
        }
    if (stationary)
        strip_finish(linalg_lanes(), (int)size, w->exponent, w->times, w->argument);
    else
        copy(size, w->times, w->argument);
}

void kernel_term(const struct kernel *k, const struct term *t, int skip, int add,
                 struct rows Z, struct rows X, double *out)
{
    struct tile w;
    for (int m = 0; m < Z.n; m += KERNEL_TILE)
        for (int i = 0; i < X.n; i += KERNEL_WIDE) {
            const struct rows some = rows_tile(Z, m, KERNEL_TILE),
                              rows = rows_tile(X, i, KERNEL_WIDE);
            term_tile(k, t, skip, some, rows, &w);
            for (int a = 0; a < rows.n; a++) {
                const double *from = w.argument + (size_t)a * some.n;
                double *to = out + (size_t)(i + a) * Z.n + m;
                if (add)
                    add_scaled((size_t)some.n, 1.0, from, to);
                else
                    copy((size_t)some.n, from, to);
            }
        }
}

void kernel_cross(const struct kernel *k, struct rows Z, struct rows X, double *K)
{
    if (strips_of_terms(k, k->term, k->n_terms, Z, X, K))
        return;
    for (int t = 0; t < k->n_terms; t++)
        kernel_term(k, k->term + t, -1, t > 0, Z, X, K);
}

void kernel_term_diagonal(const struct kernel *k, const struct term *t, int skip,
                          struct rows X, double *out)
{
    const size_t n = (size_t)X.n;
    double s[KERNEL_TILE], none[KERNEL_TILE];
    fill(n, t->variance, out);
    for (int i = 0; i < t->n_factors; i++) {
        const struct factor *f = kernel_factor(k, t, i);
        if (i == skip || factor_is_constant(f))
            continue;
        factor_self_argument(f, X, s);
        factor_split(f, n, s, none, out);
    }
}

void kernel_diagonal(const struct kernel *k, struct rows X, double *diagonal)
{
    double some[KERNEL_TILE];
    for (int i = 0; i < X.n; i += KERNEL_TILE) {
        const struct rows tile = rows_tile(X, i, KERNEL_TILE);
        fill((size_t)tile.n, 0.0, diagonal + i);
        for (int t = 0; t < k->n_terms; t++) {
            kernel_term_diagonal(k, k->term + t, -1, tile, some);
            add_scaled((size_t)tile.n, 1.0, some, diagonal + i);
        }
    }
}
