#include <float.h>
#include "exact.h"
#include "kernel_pull.h"
#include "linalg.h"

static const double log_2pi = 1.837877066409345483560659472811;

enum { columns_at_a_time = 256 };

/* variance of the noise of row i */
static double noise_of(const struct exact *e, int i)
{
    return e->weights == NULL ? e->model->s2 : e->model->s2 / e->weights[i];
}

/* L of K, which is there, and alpha */
static enum status factor(struct exact *e)
{
    const int n = e->pass.rows->N;
    double *K = e->L, *alpha = e->alpha;
    for (int i = 0; i < n; i++) /* alpha: the diagonal, at first */
        alpha[i] = K[(size_t)i * n + i] += noise_of(e, i);
    for (int start = 0; start < n; start += columns_at_a_time) {
        const int left = n - start;
        if (e->pass.plan.interrupt != NULL)
            e->pass.plan.interrupt();
        if (chol_columns(n, start, left < columns_at_a_time ? left : columns_at_a_time,
                         K))
            return STATUS_EXACT_NOT_PD;
    }
    if (chol_finish(n, K))
        return STATUS_EXACT_NOT_PD;
    for (int i = 0; i < n; i++) { /* a pivot that is nothing but rounding */
        const double pivot = K[(size_t)i * n + i];
        if (pivot * pivot <= 8.0 * DBL_EPSILON * alpha[i])
            return STATUS_EXACT_NOT_PD;
    }
    copy((size_t)n, e->pass.rows->y, alpha);
    solve_chol(n, 1, K, alpha);
    return STATUS_OK;
}

/* sums: dtheta of K_bar */
static void pulling_add(const void *self, const struct visit *v)
{
    const struct exact *e = self;
    const struct kernel *k = e->model->kernel;
    const struct block all = source_whole(e->pass.rows), *b = &v->block;
    double *K = v->work, *rest = K + (size_t)all.n * b->n;
    kernel_cross(k, all.n, all.X, all.ldx, b->n, b->X, b->ldx, K);
    kernel_pull(k, all.n, all.X, all.ldx, b->n, b->X, b->ldx, K,
                e->K_bar + (size_t)b->first * all.n, rest, NULL, v->sums);
}

enum status exact_run(struct exact *e, double *value)
{
    const int n = e->pass.rows->N;
    const struct kernel_matrix K = {e->model->kernel, source_whole(e->pass.rows), e->L};
    pass_run(&e->pass, kernel_matrix_sink(&K));
    const enum status status = factor(e);
    if (status == STATUS_OK)
        *value = 0.5 * (n * log_2pi + chol_logdet(n, e->L) +
                        dot((size_t)n, e->pass.rows->y, e->alpha));
    return status;
}

/* K_bar = ((K + s2 W^{-1})^{-1} - alpha alpha') / 2,  noise = sum_i K_bar_ii s2 / w_i */
void exact_gradient(struct exact *e, double *dtheta, double *noise)
{
    const int n = e->pass.rows->N;
    const size_t nn = (size_t)n * n;
    const struct kernel *k = e->model->kernel;
    struct sink pulling = sum_sink(e, pulling_add, (size_t)n, (size_t)k->n_theta, dtheta);
    pulling.more = kernel_size(k, n);
    e->K_bar = arena_take(e->pass.plan.arena, nn);
    fill(nn, 0.0, e->K_bar);
    add_diagonal(n, 0.5, e->K_bar);
    solve_chol(n, n, e->L, e->K_bar);
    add_xyt(n, n, -0.5, e->alpha, e->alpha, e->K_bar);
    *noise = 0.0;
    for (int i = 0; i < n; i++)
        *noise += e->K_bar[(size_t)i * n + i] * noise_of(e, i);
    pass_run(&e->pass, pulling);
}

static void predicting_add(const void *self, const struct visit *v)
{
    const struct exact_predicting *to = self;
    const struct block *b = &v->block;
    const int N = to->z->M;
    double *variance = to->variance + b->first;
    mult_Atx(N, b->n, 1.0, v->K, to->alpha, 0.0, to->mean + b->first);
    kernel_diagonal(to->z->model->kernel, b->n, b->X, b->ldx, variance);
    subtract_squares(N, b->n, v->A, variance);
}

struct sink exact_predicting_sink(const struct exact_predicting *self)
{
    return row_sink(self, predicting_add, 0);
}
