#include <math.h>
#include "likelihood.h"
#include "kernel_pull.h"
#include "linalg.h"

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

/* Each lane has a row and its neighbours, n rows in all, the row last. T is the covariance matrix of their responses,
 * theta has the p parameters, and the neighbours have the kriging weights z. r2: squared scaled distance in a factor */
struct lane_rows {
    const struct lanes *v;
    const struct kernel *k;
    int n;
    const double *X;
    double *values; /* for each term its matrix, then -2 dterm / dr2 of each factor */
    double *u, *Q;  /* (-z; 1) [n]; (dT / dtheta_j) u, then y: n x (p + 1) */
    double *work;   /* scratch of one lane */
};

/* Returns the number of triangular matrices in lane_rows.values for a term: its own, and one for each factor. */
static size_t triangles(const struct term *t)
{
    return 1 + (size_t)t->n_factors;
}

/* Returns the number of doubles of lane_rows.work, the scratch of other_slopes(), for n rows in a lane. */
static size_t lane_size(const struct kernel *k, size_t n)
{
    return n * ((size_t)kernel_columns(k) + n + 1 + k->n_theta) +
           term_slopes_size(k, (int)n);
}

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

/* ---- kernel terms without vector code: one lane at a time ------------------------------------ */

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

/* ---- the covariance matrix of the rows, and its derivatives, from all kernel terms ---------- */

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

/* Computes (dT / dtheta) u for the covariance matrix T of responses, the vector u = r->u and noise parameters theta. It
 * is noise * u for the log noise variance, and noise * b_l * u for the coefficient of b_l in the log noise variance. */
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

/* Replaces T by the Cholesky factor of T + diag(noise) in each lane. Returns 0 if a matrix is not positive definite. */
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

enum status vecchia_add(const struct gathered *of, const struct kernel *k, int s,
                        int slopes, struct vecchia *sum)
{
    const struct lanes *v = of->v;
    const int n = s + 1, lanes = v->lanes, p = slopes ? sum->p : 0;
    const size_t column = (size_t)n * lanes, last = column - lanes,
                 triangle = triangle_size(n) * lanes;
    double *T = of->work, *D = T + triangle - lanes, *u = of->u, *w;
    struct lane_rows r = {v,   k, n, of->X, NULL, T + triangle, T + triangle + column,
                          NULL};
    r.values = r.Q + column * (sum->p + 1);
    r.work = r.values + values_size(k, n) * lanes;
    fill(triangle, 0.0, T);
    add_terms(&r, T);
    if (!factorise(&r, of->noise, T))
        return STATUS_EXACT_NOT_PD;
    w = r.Q + column * p; /* y is stored after the q_j; solve() replaces y by (w; r) */
    fill(column * p, 0.0, r.Q);
    copy(column, of->y, w);
    if (u != NULL) {
        v->kriging(n, T, u);
        copy((size_t)lanes, D, u + column);
    }
    if (slopes) {
        v->kriging(n, T, r.u);
        add_slopes(&r);
        noise_slopes(&r, p - k->n_theta - 1, of->noise, of->b, r.Q + column * k->n_theta);
    }
    v->solve(n, T, p + 1, r.Q);
    if (u != NULL)
        copy((size_t)lanes, w + last, u + column + lanes);
    for (int l = 0; l < lanes; l++) {
        const double d = D[l], e = w[last + l];
        sum->value -= of->times[l] * 0.5 * (log(2.0 * PI * d) + e * e / d);
    }
    if (!isfinite(sum->value))
        return STATUS_NOT_FINITE;
    if (slopes)
        v->moments(n, p, of->times, D, r.Q, sum->score, sum->information);
    return STATUS_OK;
}

/* ---- the pass over all terms of the likelihood ----------------------------------------------- */

/* A block of this many terms (rows) takes longer than the start of a thread, and ends soon enough for interrupts. */
enum { most_rows = 256 };

/* The pass sums score, information and MORE numbers: the log likelihood, and how many blocks failed, by kind. */
enum { VALUE, NOT_PD, NOT_FINITE, MORE };

static int neighbours_of(const struct likelihood *l, int t)
{
    const int *near = l->neighbours + (size_t)t * l->s;
    int s = 0;
    while (s < l->s && near[s] >= 0)
        s++;
    return s;
}

/* If likelihood.slopes is 2, the information is estimated from the first 16 of every 64 terms of the likelihood. */
enum { sampled_terms = 16, sampled_of = 4 };

static int has_information(const struct likelihood *l, int t)
{
    return l->slopes != 2 || t / sampled_terms % sampled_of == 0;
}

/* The sums of the rows in all lanes are computed by `part` if there is a noise basis. It has a coefficient for each of
 * those columns of the basis alone that are not 0 in all of these rows: derivatives by other coefficients are 0. Its
 * parameter i is parameter at[i] of the whole. */
struct part {
    double *memory; /* vecchia_size() doubles for all coefficients */
    int *row, *at;  /* numbers of the rows in all lanes; p + q integers */
};

static struct vecchia part_begin(const struct likelihood *l, int n,
                                 const struct part *part, double *b)
{
    const int own = l->model->kernel->n_theta + 1;
    struct vecchia sum;
    const int q = sparse_gather(&l->basis, n, part->row, part->at + own, b);
    for (int i = 0; i < own + q; i++)
        part->at[i] = i < own ? i : part->at[i] + own;
    vecchia_init(l->model->kernel, q, part->memory, &sum);
    return sum;
}

static void part_end(const struct vecchia *part, const int *at, struct vecchia *sum)
{
    for (int i = 0; i < part->p; i++) {
        sum->score[at[i]] += part->score[i];
        for (int j = i; j < part->p && part->information != NULL; j++)
            sum->information[(size_t)at[i] * sum->p + at[j]] +=
                part->information[(size_t)i * part->p + j];
    }
}

/* Adds terms t, ..., t + n - 1 of the likelihood, with s neighbours each, one in a lane. Other lanes have weight 0. */
static enum status add_lanes(const struct likelihood *l, int t, int n, int s,
                             const struct gathered *to, const struct part *part,
                             struct vecchia *sum)
{
    const struct source *from = l->rows;
    const int sparse = l->slopes && l->q > 0, lanes = to->v->lanes,
              rows = (s + 1) * lanes, *row = part->row;
    for (int i = 0; i < rows; i++) { /* number a of a lane, its own row last */
        const int lane = i % lanes, a = i / lanes, own = t + (lane < n ? lane : n - 1);
        const int *near = l->neighbours + (size_t)own * l->s;
        part->row[i] = a < s ? near[a] : l->row[own];
        to->y[i] = l->given == NULL
                       ? from->y[row[i]]
                       : l->given[(size_t)own * (l->s + 1) + (a < s ? a : l->s)];
        to->noise[i] = l->model->s2 / or_one(l->weights, row[i]);
        to->times[lane] = lane < n ? or_one(l->times, own) : 0.0;
    }
    for (int j = 0; j < kernel_columns(l->model->kernel); j++)
        for (int i = 0; i < rows; i++)
            to->X[(size_t)j * rows + i] = from->X[(size_t)j * from->ldx + row[i]];
    struct vecchia own = sparse ? part_begin(l, rows, part, to->b) : *sum;
    own.value = sum->value;
    if (!has_information(l, t))
        own.information = NULL;
    const enum status status = vecchia_add(to, l->model->kernel, s, l->slopes, &own);
    sum->value = own.value;
    if (sparse)
        part_end(&own, part->at, sum);
    for (int lane = 0; lane < n && l->u != NULL; lane++) {
        double *u = l->u + (size_t)(t + lane) * (l->s + 1);
        for (int a = 0; a <= s; a++)
            u[a < s ? a : l->s] = to->u[a * to->v->lanes + lane];
        l->d[t + lane] = to->u[(s + 1) * to->v->lanes + lane];
        if (l->r != NULL)
            l->r[t + lane] = to->u[(s + 2) * to->v->lanes + lane];
    }
    return status;
}

static void terms_add(const void *self, const struct visit *v)
{
    const struct likelihood *l = self;
    const struct kernel *k = l->model->kernel;
    const struct lanes *lanes = lanes_of(linalg_lanes());
    const size_t n = ((size_t)l->s + 1) * lanes->lanes, size = vecchia_size(k, l->q);
    double *X = v->work, *y = X + n * kernel_columns(k), *times = y + (2 + l->q) * n;
    double *u = times + lanes->lanes;
    const struct gathered to = {lanes,
                                X,
                                y,
                                y + n,
                                y + 2 * n,
                                times,
                                l->u == NULL ? NULL : u,
                                u + n + 2 * lanes->lanes};
    const size_t used = vecchia_rows_size(lanes, k, l->q, l->s);
    int *row = (int *)(to.work + used + vecchia_size(k, l->q));
    const struct part part = {to.work + used, row, row + n};
    struct vecchia sum;
    enum status status = STATUS_OK;
    vecchia_init(k, l->q, v->sums, &sum);
    for (int t = v->block.first, end = t + v->block.n; t < end && status == STATUS_OK;) {
        const int s = neighbours_of(l, t), first = t;
        do
            t++;
        while (t < end && t < first + lanes->lanes && neighbours_of(l, t) == s &&
               has_information(l, t) == has_information(l, first));
        status = add_lanes(l, first, t - first, s, &to, &part, &sum);
    }
    v->sums[size + VALUE] = sum.value;
    v->sums[size + NOT_PD] = status == STATUS_EXACT_NOT_PD;
    v->sums[size + NOT_FINITE] = status == STATUS_NOT_FINITE;
}

enum status likelihood_run(struct likelihood *l, struct vecchia *whole)
{
    const struct kernel *k = l->model->kernel;
    const size_t size = vecchia_size(k, l->q);
    struct plan *plan = &l->pass.plan;
    if (plan->block > most_rows) { /* the number of threads stays the same */
        plan->block = most_rows;
        plan->n_blocks = (l->count + most_rows - 1) / most_rows;
    }
    const struct lanes *v = lanes_of(linalg_lanes());
    const size_t n = (size_t)l->s + 1, each = n * (kernel_columns(k) + 4 + l->q) + 3;
    double *sums = arena_take(plan->arena, size + MORE);
    struct sink sink = sum_sink(l, terms_add, 0,
                                each * v->lanes + vecchia_rows_size(v, k, l->q, l->s) +
                                    size + k->n_theta + 1 + l->q,
                                size + MORE, sums);
    if (l->slopes)
        l->basis = sparse_rows(l->rows->N, l->q, l->b, plan->arena);
    sink.by_block = 1;
    vecchia_init(k, l->q, sums, whole);
    pass_run(&l->pass, sink);
    whole->value = sums[size + VALUE];
    double counted = 0.0;
    for (int t = 0; t < l->count; t++)
        counted += has_information(l, t);
    for (int j = 0; j < whole->p * whole->p && l->slopes == 2; j++)
        whole->information[j] *= l->count / counted;
    mirror_lower(whole->p, whole->information);
    if (sums[size + NOT_PD] > 0.0)
        return STATUS_EXACT_NOT_PD;
    return sums[size + NOT_FINITE] > 0.0 ? STATUS_NOT_FINITE : STATUS_OK;
}
