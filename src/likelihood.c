#include "likelihood.h"
#include "linalg.h"

/* Blocks are large enough to pay for a parallel region on a busy machine, and small enough for interrupts. */
enum { most_rows = 256 };

/* The sums are the arrays of struct vecchia, its value, and how many blocks failed in each of two ways. */
enum { VALUE, NOT_PD, NOT_FINITE, MORE };

/* The rows of the lanes with s neighbours each, as vecchia_add() reads them. */
struct gathered {
    const struct lanes *v;
    double *X, *y, *noise, *b, *times, *u, *work;
};

/* Copies the entries of column x for the s rows `near` and for row `own` to one lane. */
static void gather_column(const double *x, int s, const int *near, int own, int lanes,
                          double *to)
{
    for (int a = 0; a < s; a++)
        to[a * lanes] = x[near[a]];
    to[s * lanes] = x[own];
}

/* Copies the s rows `near` and row `own` to one lane, column by column. */
static void gather(const struct likelihood *l, int s, const int *near, int own, int lane,
                   const struct gathered *to)
{
    const int columns = kernel_columns(l->model->kernel), lanes = to->v->lanes;
    const size_t next = (size_t)(s + 1) * lanes;
    for (int j = 0; j < columns; j++)
        gather_column(l->rows->X + (size_t)j * l->rows->ldx, s, near, own, lanes,
                      to->X + j * next + lane);
    for (int j = 0; j < l->q; j++)
        gather_column(l->b + (size_t)j * l->rows->N, s, near, own, lanes,
                      to->b + j * next + lane);
    gather_column(l->rows->y, s, near, own, lanes, to->y + lane);
    for (int a = 0; a <= s; a++) {
        const int row = a < s ? near[a] : own;
        to->noise[a * lanes + lane] =
            l->model->s2 / (l->weights == NULL ? 1.0 : l->weights[row]);
    }
}

/* Returns the number of neighbours of term t. */
static int neighbours_of(const struct likelihood *l, int t)
{
    const int *near = l->neighbours + (size_t)t * l->s;
    int s = 0;
    while (s < l->s && near[s] >= 0)
        s++;
    return s;
}

/* If `slopes` is 2, the information is estimated from every fourth run of 16 consecutive terms. */
enum { sampled_terms = 16, sampled_of = 4 };

static int has_information(const struct likelihood *l, int t)
{
    return l->slopes != 2 || t / sampled_terms % sampled_of == 0;
}

/* Adds the terms t, ..., t + n - 1, which have s neighbours each.  Lanes beyond n repeat the last term, times 0. */
static enum status add_terms(const struct likelihood *l, int t, int n, int s,
                             const struct gathered *to, struct vecchia *sum)
{
    for (int lane = 0; lane < to->v->lanes; lane++) {
        const int own = t + (lane < n ? lane : n - 1);
        const int *near = l->neighbours + (size_t)own * l->s;
        gather(l, s, near, l->row[own], lane, to);
        for (int a = 0; a <= s && l->given != NULL; a++)
            to->y[a * to->v->lanes + lane] =
                l->given[(size_t)own * (l->s + 1) + (a < s ? a : l->s)];
        to->times[lane] = lane >= n ? 0.0 : l->times == NULL ? 1.0 : l->times[own];
    }
    struct vecchia part = *sum;
    if (!has_information(l, t))
        part.information = NULL;
    const enum status status =
        vecchia_add(to->v, l->model->kernel, s, to->X, to->y, to->noise, to->b, to->times,
                    l->slopes, l->u == NULL ? NULL : to->u, to->work, &part);
    sum->value = part.value;
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
    const struct gathered to = {lanes,     X,     y, y + n,
                                y + 2 * n, times, u, u + n + 2 * lanes->lanes};
    struct vecchia sum;
    enum status status = STATUS_OK;
    vecchia_init(k, l->q, v->sums, &sum);
    for (int t = v->block.first, end = t + v->block.n; t < end && status == STATUS_OK;) {
        const int s = neighbours_of(l, t), first = t;
        do
            t++;
        while (t < end && t < first + lanes->lanes && neighbours_of(l, t) == s &&
               has_information(l, t) == has_information(l, first));
        status = add_terms(l, first, t - first, s, &to, &sum);
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
    const size_t each = ((size_t)l->s + 1) * (kernel_columns(k) + 3 + l->q) + 3;
    double *sums = arena_take(plan->arena, size + MORE);
    struct sink sink =
        sum_sink(l, terms_add, 0, each * v->lanes + vecchia_rows_size(v, k, l->q, l->s),
                 size + MORE, sums);
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
