#include <math.h>
#include "kernel_pull.h"
#include "linalg.h"
#include "simd.h"

/* ---- derivatives in inputs and lengthscales, from those in squared distances or products ------- */

/* This number of rows of X is processed at a time: the gradient dZ in the rows of Z is then read and written once. */
enum { FACTOR_ROWS = 4 };

/* Adds to g_m the derivative of sum_i w_im ((x_i - z_m) rate)^2 / 2 in z_m, which is -sum_i w_im (x_i - z_m) rate^2. */
static void pull_points(int M, double rate, const double *x, const double *restrict z,
                        const double *restrict w, double *restrict g)
{
    SIMD
    for (int m = 0; m < M; m++) {
        double wu[FACTOR_ROWS];
        EACH (i, FACTOR_ROWS)
            wu[i] = w[(size_t)i * M + m] * ((x[i] - z[m]) * rate);
        g[m] -= ((wu[0] + wu[1]) + (wu[2] + wu[3])) * rate;
    }
}

/* Returns sum_im w_im u_im^2, where u_im = (x_i - z_m) rate and rate = 1 / l. This is minus the derivative of half the
 * sum in log l. The product (w u) u is 0 if w = 0, but w (u^2) might be 0 times infinity. */
static double pull_lengthscale(int M, double rate, const double *x,
                               const double *restrict z, const double *restrict w)
{
    double sum = 0.0;
    SIMD_SUM
    for (int m = 0; m < M; m++) {
        double wuu[FACTOR_ROWS];
        EACH (i, FACTOR_ROWS) {
            const double u = (x[i] - z[m]) * rate;
            wuu[i] = w[(size_t)i * M + m] * u * u;
        }
        sum += (wuu[0] + wuu[1]) + (wuu[2] + wuu[3]);
    }
    return sum;
}

/* Returns sum_im w_im u_im^2, where u_im is LEVELS_APART rate if the level numbers x_i and z_m differ, else 0. */
static double pull_levels_apart(int M, int n, double rate, const double *x,
                                const double *restrict z, const double *restrict w)
{
    const double u = LEVELS_APART * rate;
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        for (int m = 0; m < M; m++)
            sum += z[m] != x[i] ? w[(size_t)i * M + m] * u * u : 0.0;
    return sum;
}

static void pull_scaled(const struct factor *f, struct rows Z, struct rows X,
                        const double *w, double *dZ, double *dtheta)
{
    const int M = Z.n, n = X.n;
    for (int i = 0; i < n; i += FACTOR_ROWS, w += (size_t)FACTOR_ROWS * M) {
        const int rows = min_int(n - i, FACTOR_ROWS);
        for (int j = 0; j < f->d; j++) {
            /* a lengthscale below 1e-290 counts as 1e-290, so that (x - z) rate is finite */
            const double *z = rows_column(Z, f->column[j]),
                         *xs = rows_column(X, f->column[j]) + i,
                         rate = fmin(factor_rate(f, j), 1e290);
            double x[FACTOR_ROWS], *slope = dtheta;
            if (slope != NULL)
                slope += f->at + (f->isotropic ? 0 : j);
            for (int a = 0; a < FACTOR_ROWS; a++) /* missing rows repeat the first */
                x[a] = xs[a < rows ? a : 0];
            if (dZ != NULL && rate > 0.0)
                pull_points(M, rate, x, z, w, dZ + (size_t)f->column[j] * M);
            if (slope != NULL)
                *slope -= rate < 0.0 ? pull_levels_apart(M, rows, rate, x, z, w)
                                     : pull_lengthscale(M, rate, x, z, w);
        }
    }
}

/* Adds to dZ and dtheta the derivatives of sum w r2 for a periodic factor with lengthscale l and input columns j:
 *     r2 = (2 / l^2) sum_j (1 - cos b_j),  b = 2 pi (x - z) / period,
 *     d r2 / d z = -(4 pi / (period l^2)) sin b,   d r2 / d log period = -(2 / l^2) b sin b,
 *     d r2 / d log l = -2 r2 */
static void pull_periodic(const struct factor *f, struct rows Z, struct rows X,
                          const double *w, double *dZ, double *dtheta)
{
    const double rate = fmin(factor_rate(f, 0), 1e145),
                 turn = 2.0 * PI / factor_period(f);
    const int M = Z.n, n = X.n;
    double c[FACTOR_ARC], s[FACTOR_ARC], of_period = 0.0, of_lengthscale = 0.0;
    for (int j = 0; j < f->d; j++)
        for (int first = 0; first < M; first += FACTOR_ARC) {
            const int some = min_int(M - first, FACTOR_ARC);
            const double *z = rows_column(Z, f->column[j]) + first;
            for (int m = 0; m < some; m++)
                factor_on_circle(z[m], factor_period(f), c + m, s + m);
            for (int i = 0; i < n; i++) {
                const double x = rows_column(X, f->column[j])[i];
                const double *restrict wi = w + (size_t)i * M + first;
                double cx, sx;
                factor_on_circle(x, factor_period(f), &cx, &sx);
                for (int m = 0; m < some; m++) {
                    const double sine = sx * c[m] - cx * s[m];
                    const double t = wi[m] * sine * rate * rate;
                    const double u = (cx - c[m]) * rate, v = (sx - s[m]) * rate;
                    if (dZ != NULL)
                        dZ[(size_t)f->column[j] * M + first + m] -= 2.0 * turn * t;
                    of_period -= 2.0 * t * turn * (x - z[m]);
                    of_lengthscale -= 2.0 * (wi[m] * u * u + wi[m] * v * v);
                }
            }
        }
    if (dtheta != NULL) {
        dtheta[f->at] += of_lengthscale;
        dtheta[f->at + 1] += of_period;
    }
}

/* Adds to dZ the derivatives of sum_im w_im s(x_i, z_m), s such as x'z. METRIC_GROUP: s = 0 at different levels. */
static void pull_inputs(const struct factor *f, struct rows Z, struct rows X,
                        const double *w, double *dZ)
{
    const int group = f->profile->metric == METRIC_GROUP;
    const double *z = rows_column(Z, f->column[0]), *x = rows_column(X, f->column[0]);
    for (int j = group; j < f->d && dZ != NULL; j++)
        for (int i = 0; i < X.n; i++) {
            const double slope = factor_input_slope(f, j, rows_from(X, i, 1)),
                         *restrict wi = w + (size_t)i * Z.n;
            double *restrict g = dZ + (size_t)f->column[j] * Z.n;
            for (int m = 0; m < Z.n; m++)
                if (!group || x[i] == z[m])
                    g[m] += wi[m] * slope;
        }
}

/* Let F be a function of S (M x n), squared distances or products of the rows of Z and X, with dF = sum(S_bar * dS).
 * Adds dF / dZ to dZ (M x columns, leading dimension M), and derivatives in log lengthscales and log periods to dtheta.
 * Either may be NULL. S_bar has room for FACTOR_ROWS - 1 more rows of X, and is overwritten. */
static void factor_pull(const struct factor *f, struct rows Z, struct rows X,
                        double *S_bar, double *dZ, double *dtheta)
{
    const int M = Z.n, more = (FACTOR_ROWS - X.n % FACTOR_ROWS) % FACTOR_ROWS;
    const size_t size = (size_t)M * X.n;
    if (f->profile->metric == METRIC_PERIODIC)
        pull_periodic(f, Z, X, S_bar, dZ, dtheta);
    if (f->profile->metric == METRIC_PRODUCT || f->profile->metric == METRIC_GROUP)
        pull_inputs(f, Z, X, S_bar, dZ);
    if (f->profile->metric == METRIC_SCALED) {
        for (size_t i = 0; i < size; i++)
            S_bar[i] *= 2.0;
        for (size_t i = size; i < size + (size_t)more * M; i++)
            S_bar[i] = 0.0;
        pull_scaled(f, Z, X, S_bar, dZ, dtheta);
    }
}

/* ---- derivatives in inputs and parameters, from those in a kernel matrix ---------------------- */

/* Returns how many rows of X are processed at a time: those of a tile, or few if no kernel values are computed. */
static int rows_at_a_time(const struct kernel *k)
{
    return kernel_is_single(k) ? FACTOR_ROWS : KERNEL_WIDE;
}

/* Returns the sum of d^2, the number of pairs of levels, over the METRIC_LEVELS factors among the first n_factors. */
static size_t levels_before(const struct kernel *k, int n_factors)
{
    size_t size = 0;
    for (int f = 0; f < n_factors; f++)
        if (k->factor[f].profile->metric == METRIC_LEVELS)
            size += (size_t)k->factor[f].d * k->factor[f].d;
    return size;
}

size_t kernel_size(const struct kernel *k, int M)
{
    const size_t piece = (size_t)rows_at_a_time(k) * M;
    return 3 * piece + levels_before(k, k->n_factors);
}

/* Adds w_im, an objective's derivative in the factor's value at (x_i, z_m), to `sums` [level of x_i, level of z_m]. */
static void pull_levels(const struct factor *f, struct rows Z, struct rows X,
                        const double *w, double *sums)
{
    int of_z[KERNEL_TILE], of_x[KERNEL_WIDE];
    factor_levels(f, X, of_x);
    for (int m = 0; m < Z.n; m += KERNEL_TILE) {
        const struct rows some = rows_tile(Z, m, KERNEL_TILE);
        factor_levels(f, some, of_z);
        for (int i = 0; i < X.n; i++)
            for (int a = 0; a < some.n; a++)
                if (of_x[i] >= 0 && of_z[a] >= 0)
                    sums[(size_t)of_x[i] * f->d + of_z[a]] += w[(size_t)i * Z.n + m + a];
    }
}

struct pull {
    struct rows Z, X;
    const double *K_bar;
    double *w, *S, *values, *levels; /* scratch, group x M each; sums by levels */
    double *dZ, *dtheta;
};

static void multiply(size_t n, const double *restrict by, double *restrict x)
{
    SIMD
    for (size_t i = 0; i < n; i++)
        x[i] *= by[i];
}

/* Given an objective's derivatives p->K_bar in a term's values k, adds those through its factor f to dZ and dtheta. */
static void pull_stationary(const struct factor *f, const double *k, const struct pull *p)
{
    const struct profile *profile = f->profile;
    const size_t size = (size_t)p->Z.n * p->X.n;
    const double *shape = factor_shape(f);
    if (profile->slope_reads_r2)
        factor_argument(f, p->Z, p->X, p->S);
    if (p->dtheta != NULL && profile->n_shape > 0) {
        profile->shape_slope((int)size, shape, k, p->S, p->w);
        p->dtheta[f->at + factor_n_metric(f)] += dot(size, p->w, p->K_bar);
    }
    profile->slope((int)size, shape, k, p->S, p->w);
    multiply(size, p->K_bar, p->w);
    factor_pull(f, p->Z, p->X, p->w, p->dZ, p->dtheta);
}

/* p->K_bar has an objective's derivatives in the values of a term. Adds those through factor i, which is not
 * stationary, to dZ and dtheta. For this, p->w becomes K_bar times the term's variance and its other factors. */
static void pull_other(const struct kernel *k, const struct term *t, int i,
                       const struct pull *p)
{
    const struct factor *f = kernel_factor(k, t, i);
    const struct profile *profile = f->profile;
    const size_t size = (size_t)p->Z.n * p->X.n;
    const int smooth = profile->metric == METRIC_PRODUCT || factor_has_levels(f);
    if (!smooth || (p->dZ == NULL && f->n_parameters == 0))
        return;
    kernel_term(k, t, i, 0, p->Z, p->X, p->w);
    multiply(size, p->K_bar, p->w);
    if (profile->metric == METRIC_LEVELS) {
        if (p->dtheta != NULL)
            pull_levels(f, p->Z, p->X, p->w, p->levels + levels_before(k, t->factor[i]));
        return;
    }
    for (int j = 0; j < f->n_parameters && p->dtheta != NULL; j++) {
        factor_own_slope(f, j, p->Z, p->X, p->S);
        p->dtheta[f->at + j] += dot(size, p->S, p->w);
    }
    if (p->dZ == NULL)
        return;
    factor_argument(f, p->Z, p->X, p->S);
    profile->value_slope((int)size, f->power, factor_shape(f), p->S);
    multiply(size, p->S, p->w);
    factor_pull(f, p->Z, p->X, p->w, p->dZ, NULL);
}

static void pull_term(const struct kernel *k, const struct term *t, const double *values,
                      const struct pull *p)
{
    const size_t M = (size_t)p->Z.n;
    if (p->dtheta != NULL)
        for (int i = 0; i < p->X.n; i++)
            p->dtheta[t->at] += dot(M, values + i * M, p->K_bar + i * M);
    for (int i = 0; i < t->n_factors; i++)
        if (factor_is_stationary(kernel_factor(k, t, i)))
            pull_stationary(kernel_factor(k, t, i), values, p);
    for (int i = 0; i < t->n_factors; i++)
        if (!factor_is_stationary(kernel_factor(k, t, i)))
            pull_other(k, t, i, p);
}

/* Adds to dtheta the derivatives in the parameters of correlations of levels, from `sums`, those in correlations. */
static void finish_levels(const struct kernel *k, const double *sums, double *dtheta)
{
    for (int f = 0; f < k->n_factors; f++) {
        const struct factor *factor = k->factor + f;
        const size_t dd = (size_t)factor->d * factor->d;
        if (factor->profile->metric != METRIC_LEVELS)
            continue;
        for (int p = 0; p < factor->n_parameters; p++)
            dtheta[factor->at + p] += dot(dd, factor->table + (p + 1) * dd, sums);
        sums += dd;
    }
}

void kernel_pull(const struct kernel *k, struct rows Z, struct rows X, const double *K,
                 const double *K_bar, double *work, double *dZ, double *dtheta)
{
    const int group = rows_at_a_time(k);
    const size_t M = (size_t)Z.n, piece = group * M;
    double *S = work + piece, *own = S + piece, *levels = own + piece;
    struct pull p = {Z, Z, NULL, work, S, own, levels, dZ, dtheta};
    fill(levels_before(k, k->n_factors), 0.0, p.levels);
    for (int i = 0; i < X.n; i += group) {
        p.X = rows_tile(X, i, group);
        p.K_bar = K_bar + i * M;
        for (int t = 0; t < k->n_terms; t++) {
            const double *values = K + i * M;
            if (k->n_terms > 1) {
                kernel_term(k, k->term + t, -1, 0, Z, p.X, p.values);
                values = p.values;
            }
            pull_term(k, k->term + t, values, &p);
        }
    }
    if (dtheta != NULL)
        finish_levels(k, p.levels, dtheta);
}

void kernel_pull_self(const struct kernel *k, int columns, struct rows Z, double jitter,
                      const double *K_bar, struct arena *arena, double *dZ,
                      double *dtheta)
{
    const size_t M = (size_t)Z.n, size = M * columns;
    double *K = arena_take(arena, M * M), *half = arena_take(arena, size),
           *rest = arena_take(arena, kernel_size(k, Z.n));
    kernel_cross(k, Z, Z, K);
    fill(size, 0.0, half);
    kernel_pull(k, Z, Z, K, K_bar, rest, half, dtheta);
    if (dZ != NULL)
        add_scaled(size, 2.0, half, dZ); /* each z_m is a row and a column of k(Z, Z) */
    kernel_pull_diagonal(k, Z, jitter, K_bar, Z.n + 1, dZ, dtheta);
}

/* Adds to dtheta and dX the derivatives of sum_i weight_i k_t(x_i, x_i) through the factors of a term t, for a tile of
 * rows. Factors with g(x, x) = 1 add nothing. Column j of dX begins at dX + j ld. */
static void pull_varying(const struct kernel *k, const struct term *t, struct rows X,
                         const double *weight, double *dX, int ld, double *dtheta)
{
    const size_t n = (size_t)X.n;
    double s[KERNEL_TILE], rest[KERNEL_TILE];
    for (int i = 0; i < t->n_factors; i++) {
        const struct factor *f = kernel_factor(k, t, i);
        if (factor_is_constant(f))
            continue;
        kernel_term_diagonal(k, t, i, X, rest);
        multiply(n, weight, rest);
        for (int j = 0; j < f->n_parameters && dtheta != NULL; j++) {
            for (int a = 0; a < X.n; a++)
                factor_own_slope(f, j, rows_from(X, a, 1), rows_from(X, a, 1), s + a);
            dtheta[f->at + j] += dot(n, s, rest);
        }
        factor_self_argument(f, X, s);
        f->profile->value_slope(X.n, f->power, factor_shape(f), s);
        for (int j = f->profile->metric == METRIC_GROUP; j < f->d && dX != NULL; j++)
            /* for s(x, z), such as x'z, symmetry gives d s(x, x) / dx = 2 d s(x, z) / dz at z = x */
            for (int a = 0; a < X.n; a++)
                dX[(size_t)f->column[j] * ld + a] +=
                    2.0 * s[a] * rest[a] * factor_input_slope(f, j, rows_from(X, a, 1));
    }
}

void kernel_pull_diagonal(const struct kernel *k, struct rows X, double times,
                          const double *w, int stride, double *dX, double *dtheta)
{
    double some[KERNEL_TILE], weight[KERNEL_TILE];
    if (kernel_is_constant(k)) {
        double sum = 0.0;
        for (int i = 0; i < X.n; i++)
            sum += w[(size_t)i * stride];
        if (dtheta != NULL)
            dtheta[k->term->at] += times * k->term->variance * sum;
        return;
    }
    for (int i = 0; i < X.n; i += KERNEL_TILE) {
        const struct rows tile = rows_tile(X, i, KERNEL_TILE);
        for (int a = 0; a < tile.n; a++)
            weight[a] = times * w[(size_t)(i + a) * stride];
        for (int t = 0; t < k->n_terms; t++) {
            if (dtheta != NULL) {
                kernel_term_diagonal(k, k->term + t, -1, tile, some);
                dtheta[k->term[t].at] += dot((size_t)tile.n, weight, some);
            }
            pull_varying(k, k->term + t, tile, weight, dX == NULL ? NULL : dX + i, X.n,
                         dtheta);
        }
    }
}

size_t term_slopes_size(const struct kernel *k, int n)
{
    return (size_t)k->n_theta + kernel_size(k, n);
}

/* Computes element a of (dK / dtheta_j) u as d (u'k_a) / dtheta_j, where k_a is column a of K. */
void term_slopes(const struct kernel *k, const struct term *t, struct rows X,
                 const double *values, const double *u, double *work, double *out)
{
    const size_t n = (size_t)X.n, n_theta = (size_t)k->n_theta;
    struct kernel own = *k;
    own.term = t;
    own.n_terms = 1;
    for (int a = 0; a < X.n; a++) {
        fill(n_theta, 0.0, work);
        kernel_pull(&own, X, rows_from(X, a, 1), values + n * a, u, work + n_theta, NULL,
                    work);
        for (size_t j = 0; j < n_theta; j++)
            out[n * j + a] += work[j];
    }
}
