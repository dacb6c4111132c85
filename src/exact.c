#include <float.h>
#include <math.h>
#include <string.h>
#include "exact.h"
#include "kernel_pull.h"
#include "linalg.h"

enum { columns_at_a_time = 256, columns_of_a_block = 96 };

static double noise_of(const struct exact *e, int i)
{
    return e->weights == NULL ? e->model->s2 : e->model->s2 / e->weights[i];
}

/* Overwrites K in e->L by the Cholesky factor L of K + noise, and computes alpha = (L L')^{-1} y. */
static enum status factor(struct exact *e)
{
    const int n = e->pass.rows->N;
    double *K = e->L, *alpha = e->alpha;
    for (int i = 0; i < n; i++) /* keeps the diagonal for the check of the pivots */
        alpha[i] = K[(size_t)i * n + i] += noise_of(e, i);
    for (int start = 0; start < n; start += columns_at_a_time) {
        const int left = n - start;
        if (e->pass.plan.interrupt != NULL)
            e->pass.plan.interrupt();
        if (chol_columns(n, start, min_int(left, columns_at_a_time), K))
            return STATUS_EXACT_NOT_PD;
    }
    /* Fails if a pivot is NaN, or if its square is only rounding of the matrix's diagonal element (now in alpha). */
    for (int i = 0; i < n; i++) {
        const double pivot = K[(size_t)i * n + i];
        if (!(pivot * pivot > 8.0 * DBL_EPSILON * alpha[i]))
            return STATUS_EXACT_NOT_PD;
    }
    /* If derivatives follow (precision is not NULL), nothing reads K's upper triangle, so it needs no zeros. */
    if (e->precision == NULL && chol_finish(n, K))
        return STATUS_EXACT_NOT_PD;
    copy((size_t)n, e->pass.rows->y, alpha);
    solve_chol(n, 1, K, alpha);
    return STATUS_OK;
}

/* Computes a block of columns of K, from the row of its first diagonal element on.  The columns are computed without
 * gaps, then moved to their places in e->L, the last column first. */
static void columns_add(const void *self, const struct visit *v)
{
    const struct exact *e = self;
    const struct block all = source_whole(e->pass.rows), *b = &v->block;
    const int n = all.n, first = b->first, m = n - first;
    double *columns = e->L + (size_t)first * n;
    kernel_cross(e->model->kernel, rows_from(rows_of(&all), first, m), rows_of(b),
                 columns);
    for (int j = b->n - 1; j >= 0; j--)
        memmove(columns + (size_t)j * n + first, columns + (size_t)j * m,
                (size_t)m * sizeof(double));
}

static struct pass over_columns(const struct exact *e)
{
    return (struct pass){.plan =
                             plan_for(&e->pass.plan, e->pass.rows->N, columns_of_a_block),
                         .rows = e->pass.rows};
}

enum status exact_run(struct exact *e, double *value)
{
    const int n = e->pass.rows->N;
    struct pass pass = over_columns(e);
    pass_run(&pass, row_sink(e, columns_add, 0, 0));
    const enum status status = factor(e);
    if (status == STATUS_OK)
        *value = 0.5 * (n * LOG_2PI + chol_logdet(n, e->L) +
                        dot((size_t)n, e->pass.rows->y, e->alpha));
    return status;
}

/* Adds a block of columns to the derivatives of minus the log density: dtheta, then noise. With the noise variance s2,
 * weights w_i = W_ii, B = (K + s2 W^{-1})^{-1}, alpha = B y and K_bar = (B - alpha alpha') / 2,
 *
 *     dtheta = sum_ij K_bar_ij dK_ij / dtheta,   noise = sum_i K_bar_ii s2 / w_i.
 *
 * K_bar is symmetric, so a block needs only the rows from its first column on. Rows below the block count twice. */
static void pulling_add(const void *self, const struct visit *v)
{
    const struct exact *e = self;
    const struct kernel *k = e->model->kernel;
    const struct block all = source_whole(e->pass.rows), *b = &v->block;
    const int first = b->first, m = all.n - first;
    const struct rows below = rows_from(rows_of(&all), first, m);
    double *sums = v->sums;
    double *K = v->work, *K_bar = K + (size_t)m * b->n, *rest = K_bar + (size_t)m * b->n;
    chol_inverse_columns(all.n, e->L, first, b->n, K_bar);
    for (int j = 0; j < b->n; j++)
        e->precision[first + j] = K_bar[(size_t)j * m + j];
    add_xyt(m, b->n, -1.0, e->alpha + first, e->alpha + first, K_bar);
    for (int j = 0; j < b->n; j++) {
        double *column = K_bar + (size_t)j * m;
        for (int i = 0; i < b->n; i++)
            column[i] = i < j ? K_bar[(size_t)i * m + j] : 0.5 * column[i];
        sums[k->n_theta] += column[j] * noise_of(e, first + j);
    }
    kernel_cross(k, below, rows_of(b), K);
    kernel_pull(k, below, rows_of(b), K, K_bar, rest, NULL, sums);
}

void exact_gradient(struct exact *e, double *dtheta, double *noise)
{
    const int n = e->pass.rows->N;
    const struct kernel *k = e->model->kernel;
    const size_t n_slopes = (size_t)k->n_theta + 1;
    struct pass pass = over_columns(e);
    double *sums = arena_take(pass.plan.arena, n_slopes);
    struct sink sink =
        sum_sink(e, pulling_add, 2 * (size_t)n, kernel_size(k, n), n_slopes, sums);
    sink.by_block = 1;
    pass_run(&pass, sink);
    copy(n_slopes - 1, sums, dtheta);
    *noise = sums[n_slopes - 1];
}

struct precisions {
    int n;
    const double *L;
    double *precision;
};

static void precisions_add(const void *self, const struct visit *v)
{
    const struct precisions *to = self;
    const int first = v->block.first, m = to->n - first;
    lower_inverse_columns(to->n, to->L, first, v->block.n, v->work);
    for (int j = 0; j < v->block.n; j++) /* (L L')^{-1} = L^{-T} L^{-1} */
        to->precision[first + j] = sum_squares((size_t)m, v->work + (size_t)j * m);
}

void exact_precision(const struct plan *plan, const double *L, double *precision)
{
    const struct precisions to = {plan->N, L, precision};
    struct pass pass = {.plan = plan_for(plan, to.n, columns_of_a_block)};
    pass_run(&pass, row_sink(&to, precisions_add, (size_t)to.n, 0));
}
