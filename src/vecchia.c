#include <math.h>
#include "linalg.h"
#include "kernel_pull.h"
#include "vecchia.h"

size_t vecchia_size(const struct kernel *k, int q)
{
    const size_t p = (size_t)k->n_theta + 1 + q;
    return p + p * p;
}

void vecchia_init(const struct kernel *k, int q, double *memory, struct vecchia *sum)
{
    sum->p = k->n_theta + 1 + q;
    sum->value = 0.0;
    sum->score = memory;
    sum->information = memory + sum->p;
    fill(vecchia_size(k, q), 0.0, memory);
}

/* The rows in the lanes, and the kernel values of all terms, from which derivatives are computed. */
struct lane_rows {
    const struct lanes *v;
    const struct kernel *k;
    int n;
    const double *X;
    double *values; /* for each term its triangle, then S of each factor (lanes.h) */
    double *u, *Q;  /* [n], n x n_theta                                                */
    double *work;   /* scratch of one lane */
};

/* Returns the number of triangles of a term in lane_rows.values. */
static size_t triangles(const struct term *t)
{
    return 1 + (size_t)t->n_factors;
}

/* Returns the doubles of scratch of one lane, for rows, kernel values, u, Q and term_slopes(). */
static size_t lane_size(const struct kernel *k, size_t n)
{
    return n * ((size_t)kernel_columns(k) + n + 1 + k->n_theta) +
           term_slopes_size(k, (int)n);
}

/* Returns the doubles of the triangles of all terms, for one lane. */
static size_t values_size(const struct kernel *k, int n)
{
    size_t size = 0;
    for (int t = 0; t < k->n_terms; t++)
        size += triangle_size(n) * triangles(k->term + t);
    return size;
}

size_t vecchia_rows_size(const struct lanes *v, const struct kernel *k, int q, int s)
{
    const size_t n = (size_t)s + 1, p = (size_t)k->n_theta + 1 + q;
    return (triangle_size(s + 1) + n * (p + 2) + values_size(k, s + 1)) * v->lanes +
           lane_size(k, n);
}

/* ---- terms that do not have the form of strip.h: lane by lane -------------------------------- */

static void take_lane(const struct lane_rows *r, int lane, size_t n, const double *from,
                      double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i * r->v->lanes + lane];
}

static void other_values(const struct lane_rows *r, const struct term *t, double *T,
                         double *values)
{
    const int n = r->n, columns = kernel_columns(r->k);
    double *X = r->work, *K = X + (size_t)n * columns;
    for (int l = 0; l < r->v->lanes; l++) {
        size_t i = (size_t)l;
        take_lane(r, l, (size_t)n * columns, r->X, X);
        kernel_term(r->k, t, -1, 0, matrix_rows(n, X), matrix_rows(n, X), K);
        for (int a = 0; a < n; a++)
            for (int b = 0; b <= a; b++, i += r->v->lanes) {
                values[i] = K[(size_t)b * n + a];
                T[i] += values[i];
            }
    }
}

static void other_slopes(const struct lane_rows *r, const struct term *t,
                         const double *values)
{
    const int n = r->n, columns = kernel_columns(r->k), lanes = r->v->lanes;
    const size_t size = (size_t)n * r->k->n_theta;
    double *X = r->work, *K = X + (size_t)n * columns, *u = K + (size_t)n * n, *Q = u + n;
    for (int l = 0; l < lanes; l++) {
        size_t i = (size_t)l;
        take_lane(r, l, (size_t)n * columns, r->X, X);
        take_lane(r, l, (size_t)n, r->u, u);
        for (int a = 0; a < n; a++)
            for (int b = 0; b <= a; b++, i += lanes)
                K[(size_t)b * n + a] = K[(size_t)a * n + b] = values[i];
        fill(size, 0.0, Q);
        term_slopes(r->k, t, matrix_rows(n, X), K, u, Q + size, Q);
        for (size_t j = 0; j < size; j++)
            r->Q[j * lanes + l] += Q[j];
    }
}

/* ---- all terms ------------------------------------------------------------------------------ */

static void add_terms(const struct lane_rows *r, double *T)
{
    const size_t size = triangle_size(r->n) * r->v->lanes;
    double *values = r->values;
    struct strip_kernel strips;
    for (const struct term *t = r->k->term; t < r->k->term + r->k->n_terms; t++) {
        if (kernel_strips(r->k, t, 1, &strips))
            r->v->values(&strips, r->n, r->X, T, values, values + size);
        else
            other_values(r, t, T, values);
        values += triangles(t) * size;
    }
}

static void add_slopes(const struct lane_rows *r)
{
    const size_t lanes = (size_t)r->v->lanes, size = triangle_size(r->n) * lanes,
                 n = (size_t)r->n * lanes;
    const double *values = r->values;
    struct strip_kernel strips;
    for (const struct term *t = r->k->term; t < r->k->term + r->k->n_terms; t++) {
        if (kernel_strips(r->k, t, 1, &strips)) {
            r->v->multiply(r->n, values, r->u, r->Q + n * t->at);
            for (int i = 0; i < t->n_factors; i++) {
                const struct factor *f = kernel_factor(r->k, t, i);
                for (int j = 0; j < f->d; j++)
                    r->v->slope(r->n, fmin(factor_rate(f, j), 1e290),
                                r->X + n * f->column[j], values + size * (i + 1), r->u,
                                r->Q + n * (f->at + (f->isotropic ? 0 : j)));
            }
        } else {
            other_slopes(r, t, values);
        }
        values += triangles(t) * size;
    }
}

/* Computes T_j u (vecchia.h) for the log noise, noise u, and for the coefficient of column b_l, noise b_l u. */
static void noise_slopes(const struct lane_rows *r, int q, const double *noise,
                         const double *b, double *of_noise)
{
    const size_t n = (size_t)r->n * r->v->lanes;
    for (size_t j = 0; j < n; j++)
        of_noise[j] = noise[j] * r->u[j];
    for (size_t l = 0; l < (size_t)q; l++)
        for (size_t j = 0; j < n; j++)
            of_noise[(l + 1) * n + j] = of_noise[j] * b[l * n + j];
}

/* Overwrites T + diag(noise) by its factor.  Returns 0 if the matrix of a lane is not positive definite. */
static int factorise(const struct lane_rows *r, const double *noise, double *T)
{
    const int lanes = r->v->lanes;
    double all = 0.0;
    for (int a = 0; a < r->n; a++)
        for (int l = 0; l < lanes; l++) {
            T[(triangle_size(a + 1) - 1) * lanes + l] += noise[a * lanes + l];
            all += 0.0 * noise[a * lanes + l]; /* detects infinite noise */
        }
    r->v->chol(r->n, T);
    const double *D = T + (triangle_size(r->n) - 1) * lanes;
    for (int l = 0; l < lanes; l++)
        all += D[l] > 0.0 ? 0.0 : NAN;
    return all == 0.0;
}

enum status vecchia_add(const struct lanes *v, const struct kernel *k, int s,
                        const double *X, const double *y, const double *noise,
                        const double *b, const double *times, int slopes, double *u,
                        double *work, struct vecchia *sum)
{
    const int n = s + 1, lanes = v->lanes, p = slopes ? sum->p : 0;
    const size_t column = (size_t)n * lanes, last = column - lanes,
                 triangle = triangle_size(n) * lanes;
    double *T = work, *D = T + triangle - lanes, *w;
    struct lane_rows r = {v, k, n, X, NULL, T + triangle, T + triangle + column, NULL};
    r.values = r.Q + column * (sum->p + 1);
    r.work = r.values + values_size(k, n) * lanes;
    fill(triangle, 0.0, T);
    add_terms(&r, T);
    if (!factorise(&r, noise, T))
        return STATUS_EXACT_NOT_PD;
    w = r.Q + column * p; /* after the q_j: y, which solve() replaces by (w; r) */
    fill(column * p, 0.0, r.Q);
    copy(column, y, w);
    if (u != NULL) {
        v->kriging(n, T, u);
        copy((size_t)lanes, D, u + column);
    }
    if (slopes) {
        v->kriging(n, T, r.u);
        add_slopes(&r);
        noise_slopes(&r, p - k->n_theta - 1, noise, b, r.Q + column * k->n_theta);
    }
    v->solve(n, T, p + 1, r.Q);
    if (u != NULL)
        copy((size_t)lanes, w + last, u + column + lanes);
    for (int l = 0; l < lanes; l++) {
        const double d = D[l], e = w[last + l];
        sum->value -= times[l] * 0.5 * (log(2.0 * PI * d) + e * e / d);
    }
    if (!isfinite(sum->value))
        return STATUS_NOT_FINITE;
    if (slopes)
        v->moments(n, p, times, D, r.Q, sum->score, sum->information);
    return STATUS_OK;
}
