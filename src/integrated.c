#include <math.h>
#include "integrated.h"
#include "linalg.h"

/* Row t of the matrix that *F stores subtracts from a response its mean given neighbours, and divides by its sd
 * sqrt(F->d[t]). For the row's entry a (0: own row; a > 0: neighbour a), computes the data row and sqrt(F->d[t]) times
 * the entry. Returns 0 if there is no neighbour a. */
static int row_at(const struct decorrelated *F, int t, int a, int *row, double *weight)
{
    const int *near = F->near + (size_t)t * F->s;
    if (a > 0 && near[a - 1] < 0)
        return 0;
    *row = a > 0 ? near[a - 1] : F->row == NULL ? t : F->row[t];
    *weight = a > 0 ? -F->sign * F->u[(size_t)t * F->step + a - 1] : 1.0;
    *weight *= or_one(F->rows.scale, *row);
    return 1;
}

/* Computes columns and values of the nonzero entries of a data row's design z or, if F->whiten, of root'z, where root
 * root' is the prior covariance of the effects. Returns the number of entries. */
static int entries_of(const struct decorrelated *F, int row, int *column, double *value)
{
    const struct effects *e = F->e;
    const int n = effects_row(e, F->rows.X + row, F->rows.ldx, column, value);
    for (const struct grouping *g = e->grouping; g < e->grouping + e->n && F->whiten; g++)
        for (int j = 0; j < g->p; j++, value++) /* root is lower triangular */
            *value = dot((size_t)(g->p - j), g->root + (size_t)j * (g->p + 1), value);
    return n;
}

/* Computes values and columns (which may repeat) of row t of F Z, times sqrt(F->d[t]). Z is the design matrix. The
 * matrix product F v subtracts from each element of v its regression on neighbours, then scales the difference. */
static int effects_of(const struct decorrelated *F, int t, int *column, double *value)
{
    int n = 0, row;
    double weight;
    for (int a = 0; a <= F->s && row_at(F, t, a, &row, &weight); a++) {
        const int end = n + entries_of(F, row, column + n, value + n);
        for (; n < end; n++)
            value[n] *= weight;
    }
    return n;
}

/* Returns the largest number of values that effects_of() computes. */
static size_t row_size(const struct decorrelated *F)
{
    return ((size_t)F->s + 1) * most_entries;
}

size_t decorrelated_size(const struct effects *e)
{
    const size_t k = (size_t)e->M + e->q;
    return k * k + k + 2;
}

static void decorrelated_add(const void *self, const struct visit *v)
{
    const struct decorrelated *F = self;
    const int M = F->e->M, count = v->block.n;
    const size_t k = (size_t)M + F->e->q;
    double *P = v->sums, *Fy = P + k * k, *rest = Fy + k, *features = v->work,
           *value = features + (size_t)M * count, *G = value + 2 * row_size(F), weight;
    int *column = (int *)(value + row_size(F)), row;
    for (int j = 0; j < count; j++) {
        const int t = v->block.first + j, n = effects_of(F, t, column, value);
        const double rate = 1.0 / sqrt(F->d[t]);
        double *r = features + (size_t)M * j, y = 0.0;
        for (int a = 0; a <= F->s && row_at(F, t, a, &row, &weight); a++)
            y += weight * F->rows.y[row];
        y *= rate;
        fill((size_t)M, 0.0, r);
        if (M > 0)
            add_scaled((size_t)M, rate, F->R + (size_t)M * t, r);
        add_scaled((size_t)M, y, r, Fy);
        for (int b = 0; b < n; b++) {
            double *to = P + k * (M + column[b]), own = rate * value[b];
            add_scaled((size_t)M, own, r, to);
            Fy[M + column[b]] += y * own;
            for (int c = 0; c < n; c++)
                to[M + column[c]] += own * rate * value[c];
        }
        rest[0] += y * y;
        rest[1] += log(F->d[t]);
    }
    fill((size_t)M * M, 0.0, G);
    add_A_At(M, count, features, G);
    mirror_lower(M, G);
    for (int m = 0; m < M; m++)
        add_scaled((size_t)M, 1.0, G + (size_t)M * m, P + k * m);
}

struct sink decorrelated_sink(const struct decorrelated *self, double *sums)
{
    const size_t M = (size_t)self->e->M;
    return sum_sink(self, decorrelated_add, M, 2 * row_size(self) + M * M,
                    decorrelated_size(self->e), sums);
}

static double sparse_dot(int n, const int *column, const double *value, const double *x)
{
    double sum = 0.0;
    for (int k = 0; k < n; k++)
        sum += value[k] * x[column[k]];
    return sum;
}

static void respond_add(const void *self, const struct visit *v)
{
    const struct integrated *g = self;
    const struct decorrelated *F = &g->F;
    const int s = F->s;
    double *zu = v->work, *y = zu + 2 * row_size(F), value[most_entries], weight;
    int *column = (int *)(zu + row_size(F)), own[most_entries], row;
    for (int t = v->block.first; t < v->block.first + v->block.n; t++) {
        const int n = effects_of(F, t, column, zu);
        double *given = g->given + (size_t)t * (s + 1), e = 0.0, square = 0.0;
        int near = -1;
        for (int a = 0; a <= s && row_at(F, t, a, &row, &weight); a++, near++) {
            const int at = a > 0 ? a - 1 : s, entries = entries_of(F, row, own, value);
            double shared = 0.0; /* z'V Z'u */
            for (int k = 0; k < entries; k++)
                shared +=
                    value[k] * sparse_dot(n, column, zu, g->V + (size_t)own[k] * g->e->q);
            y[at] = F->rows.y[row] - sparse_dot(entries, own, value, g->b);
            given[at] = shared;
            e += weight * y[at];
            square += weight * shared;
        }
        square = sqrt(fmax(square, 0.0) + e * e);
        given[s] = square;
        for (int a = 0; a < near; a++) {
            given[a] = square > 0.0 ? (e * y[a] + given[a]) / square : 0.0;
            given[s] -= g->u[(size_t)t * (s + 1) + a] * given[a];
        }
    }
}

enum status integrated_run(struct integrated *g, struct vecchia *whole)
{
    const int q = g->e->q, slopes = g->l.slopes;
    const size_t Q = (size_t)q, size = decorrelated_size(g->e);
    struct likelihood *l = &g->l;
    double *sums = arena_take(l->pass.plan.arena, size);
    const double *v = sums + Q * Q, *rest = v + Q;
    l->u = g->u;
    l->d = g->d;
    l->slopes = 0;
    enum status status = likelihood_run(l, whole);
    if (status != STATUS_OK)
        return status;
    g->F = (struct decorrelated){g->e,          *l->rows, l->s, l->s + 1, -1.0, l->row,
                                 l->neighbours, g->u,     g->d, NULL,     1};
    g->F.rows.scale = NULL; /* the noise variances include the weights of the rows */
    pass_run(&l->pass, decorrelated_sink(&g->F, sums));
    copy(Q, v, g->b);
    if (chol_shifted(q, sums, 1.0, g->H))
        return STATUS_NOT_FINITE;
    solve_chol(q, 1, g->H, g->b);
    g->value = -0.5 * (rest[1] + chol_logdet(q, g->H) + rest[0] - dot(Q, v, g->b) +
                       l->count * log(2.0 * PI));
    if (!isfinite(g->value))
        return STATUS_NOT_FINITE;
    l->u = NULL;
    if (!slopes)
        return STATUS_OK;
    chol_inverse(q, g->H, g->V);
    pass_run(&l->pass, row_sink(g, respond_add, 0, 2 * row_size(&g->F) + l->s + 1));
    l->slopes = 1;
    l->given = g->given;
    return likelihood_run(l, whole);
}
