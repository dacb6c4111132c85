#include <math.h>
#include "integrated.h"
#include "linalg.h"

/* Returns the number of the row at a place of a term. Place s is row i itself. */
static int row_at(const struct likelihood *l, int t, int place)
{
    return place == l->s ? l->row[t] : l->neighbours[(size_t)t * l->s + place];
}

static int entries_at(const struct integrated *g, int t, int place, int *column,
                      double *value)
{
    const struct source *rows = g->l.rows;
    return effects_row(g->e, rows->X + row_at(&g->l, t, place), rows->ldx, column, value);
}

/* Z'u of term t: columns and values, which may repeat a column; returns their number */
static int effects_of_term(const struct integrated *g, int t, int *column, double *value)
{
    const int s = g->l.s, near = likelihood_neighbours(&g->l, t);
    const double *u = g->u + (size_t)t * (s + 1);
    int n = 0;
    for (int a = 0; a <= near; a++) {
        const int place = a < near ? a : s,
                  entries = entries_at(g, t, place, column + n, value + n);
        for (int k = n; k < n + entries; k++)
            value[k] *= u[place];
        n += entries;
    }
    return n;
}

/* Returns the doubles of a term: half for its values, half for its columns as integers. */
static size_t term_size(const struct integrated *g)
{
    return 2 * ((size_t)g->l.s + 1) * most_entries;
}

/* sums: N (lower), r, y~'y~, sum log d */
static void integrate_add(const void *self, const struct visit *v)
{
    const struct integrated *g = self;
    const struct likelihood *l = &g->l;
    const size_t q = (size_t)g->e->q;
    double *N = v->sums, *r = N + q * q, *rest = r + q, *value = v->work;
    int *column = (int *)(value + term_size(g) / 2);
    for (int t = v->block.first; t < v->block.first + v->block.n; t++) {
        const int n = effects_of_term(g, t, column, value),
                  near = likelihood_neighbours(l, t);
        const double *u = g->u + (size_t)t * (l->s + 1), rate = 1.0 / g->d[t];
        double e = u[l->s] * l->rows->y[l->row[t]];
        for (int a = 0; a < near; a++)
            e += u[a] * l->rows->y[row_at(l, t, a)];
        rest[0] += rate * e * e;
        rest[1] += log(g->d[t]);
        for (int i = 0; i < n; i++) {
            r[column[i]] += rate * e * value[i];
            for (int j = 0; j < n; j++)
                N[q * column[i] + column[j]] += rate * value[i] * value[j];
        }
    }
}

/* One of q vectors of a level, whose numbers are `step` apart: x <- Lam'x, or Lam x. */
static void root_times(const struct grouping *of, int transposed, size_t step, double *x)
{
    const int p = of->p;
    for (int i = 0; i < p;
         i++) { /* root is lower: its rows from the last on, its columns from the first */
        const int j = transposed ? i : p - 1 - i;
        double sum = 0.0;
        for (int k = transposed ? j : 0; k < (transposed ? p : j + 1); k++)
            sum += x[step * k] *
                   of->root[transposed ? (size_t)j * p + k : (size_t)k * p + j];
        x[step * j] = sum;
    }
}

/* X (q x n) <- Lam'X or Lam X; `square` (n = q): also from the other side */
static void times_roots(const struct effects *e, int transposed, size_t n, int square,
                        double *X)
{
    const size_t q = (size_t)e->q;
    for (const struct grouping *of = e->grouping; of < e->grouping + e->n; of++)
        for (int l = 0; l < of->levels; l++) {
            const size_t first = of->first + (size_t)l * of->p;
            for (size_t i = 0; i < n; i++)
                root_times(of, transposed, 1, X + q * i + first);
            for (size_t i = 0; i < n && square; i++)
                root_times(of, transposed, q, X + q * first + i);
        }
}

/* N -> T's factor and b; returns log det T, NaN if there is none */
static double integrate(struct integrated *g, const double *r)
{
    const int q = g->e->q;
    times_roots(g->e, 1, (size_t)q, 1, g->N);
    add_diagonal(q, 1.0, g->N);
    if (chol_lower(q, g->N))
        return NAN;
    copy((size_t)q, r, g->b);
    times_roots(g->e, 1, 1, 0, g->b);
    solve_chol(q, 1, g->N, g->b);
    times_roots(g->e, 0, 1, 0, g->b);
    return chol_logdet(q, g->N);
}

/* Returns z'b of the row at a place of a term. */
static double effect_at(const struct integrated *g, int t, int place)
{
    int column[most_entries];
    double value[most_entries], sum = 0.0;
    const int entries = entries_at(g, t, place, column, value);
    for (int k = 0; k < entries; k++)
        sum += value[k] * g->b[column[k]];
    return sum;
}

/* z'V Z'u of the row at a place of a term */
static double shared_at(const struct integrated *g, int t, int place, int n,
                        const int *of, const double *zu)
{
    int column[most_entries];
    double value[most_entries], sum = 0.0;
    const int entries = entries_at(g, t, place, column, value);
    for (int k = 0; k < entries; k++) {
        const double *V = g->V + (size_t)column[k] * g->e->q;
        double inner = 0.0;
        for (int i = 0; i < n; i++)
            inner += V[of[i]] * zu[i];
        sum += value[k] * inner;
    }
    return sum;
}

static void respond_add(const void *self, const struct visit *v)
{
    const struct integrated *g = self;
    const struct likelihood *l = &g->l;
    double *zu = v->work, *y = zu + term_size(g);
    int *column = (int *)(zu + term_size(g) / 2);
    for (int t = v->block.first; t < v->block.first + v->block.n; t++) {
        const int s = l->s, near = likelihood_neighbours(l, t),
                  n = effects_of_term(g, t, column, zu);
        const double *u = g->u + (size_t)t * (s + 1);
        double *given = g->given + (size_t)t * (s + 1), e = 0.0, square = 0.0;
        for (int a = 0; a <= near; a++) {
            const int place = a < near ? a : s;
            y[a] = l->rows->y[row_at(l, t, place)] - effect_at(g, t, place);
            given[place] = shared_at(g, t, place, n, column, zu);
            e += u[place] * y[a];
            square += u[place] * given[place];
        }
        square = sqrt(fmax(square, 0.0) + e * e);
        given[s] = square;
        for (int a = 0; a < near; a++) {
            given[a] = square > 0.0 ? (e * y[a] + given[a]) / square : 0.0;
            given[s] -= u[a] * given[a];
        }
    }
}

enum status integrated_run(struct integrated *g, struct vecchia *whole)
{
    const size_t q = (size_t)g->e->q, size = q * q + q + 2;
    struct likelihood *l = &g->l;
    const int slopes = l->slopes;
    double *sums = arena_take(l->pass.plan.arena, size);
    l->u = g->u;
    l->d = g->d;
    l->slopes = 0;
    enum status status = likelihood_run(l, whole);
    if (status != STATUS_OK)
        return status;
    pass_run(&l->pass, sum_sink(g, integrate_add, 0, term_size(g), size, sums));
    copy(q * q, sums, g->N);
    const double *r = sums + q * q, logdet = integrate(g, r);
    g->value = -0.5 * (r[q + 1] + logdet + r[q] - dot(q, r, g->b) +
                       l->count * log(2.0 * 3.14159265358979323846));
    if (!isfinite(g->value))
        return STATUS_NOT_FINITE;
    l->u = NULL;
    if (!slopes)
        return STATUS_OK;
    chol_inverse(g->e->q, g->N, g->V);
    times_roots(g->e, 0, q, 1, g->V);
    pass_run(&l->pass, row_sink(g, respond_add, 0, term_size(g) + (size_t)l->s + 1));
    l->slopes = 1;
    l->given = g->given;
    return likelihood_run(l, whole);
}
