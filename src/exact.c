#include <float.h>
#include "exact.h"
#include "kernel_pull.h"
#include "linalg.h"

static const double log_2pi = 1.837877066409345483560659472811;

enum { columns_at_a_time = 256 };

enum status exact_factor(int n, double s2, const double *weights, const double *y,
                         void (*interrupt)(void), double *K, double *alpha)
{
    for (int i = 0; i < n; i++) /* alpha: the diagonal, at first */
        alpha[i] = K[(size_t)i * n + i] += weights == NULL ? s2 : s2 / weights[i];
    for (int start = 0; start < n; start += columns_at_a_time) {
        const int left = n - start;
        if (interrupt != NULL)
            interrupt();
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
    copy((size_t)n, y, alpha);
    solve_chol(n, 1, K, alpha);
    return STATUS_OK;
}

double exact_minus_evidence(int n, const double *L, const double *alpha, const double *y)
{
    return 0.5 * (n * log_2pi + chol_logdet(n, L) + dot((size_t)n, y, alpha));
}

void exact_adjoint(int n, const double *L, const double *alpha, double *K_bar)
{
    fill((size_t)n * n, 0.0, K_bar);
    add_diagonal(n, 0.5, K_bar);
    solve_chol(n, n, L, K_bar);
    add_xyt(n, n, -0.5, alpha, alpha, K_bar);
}

double exact_slope_noise(int n, double s2, const double *weights, const double *K_bar)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += K_bar[(size_t)i * n + i] * (weights == NULL ? s2 : s2 / weights[i]);
    return sum;
}

/* ---- rows at hand ---------------------------------------------------------------------------- */

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
    const int N = e->pass.rows->N;
    const double *y = e->pass.rows->y;
    const struct kernel_matrix K = {e->model->kernel, source_whole(e->pass.rows), e->L};
    pass_run(&e->pass, kernel_matrix_sink(&K));
    const enum status status = exact_factor(N, e->model->s2, e->weights, y,
                                            e->pass.plan.interrupt, e->L, e->alpha);
    if (status == STATUS_OK)
        *value = exact_minus_evidence(N, e->L, e->alpha, y);
    return status;
}

void exact_gradient(struct exact *e, double *dtheta, double *noise)
{
    const int N = e->pass.rows->N;
    const struct kernel *k = e->model->kernel;
    struct sink pulling = sum_sink(e, pulling_add, (size_t)N, (size_t)k->n_theta, dtheta);
    pulling.more = kernel_size(k, N);
    e->K_bar = arena_take(e->pass.plan.arena, (size_t)N * N);
    exact_adjoint(N, e->L, e->alpha, e->K_bar);
    *noise = exact_slope_noise(N, e->model->s2, e->weights, e->K_bar);
    pass_run(&e->pass, pulling);
}

void exact_rows(const struct kernel *k, int n, const double *alpha, const struct block *b,
                const double *K, const double *A, double *mean, double *variance)
{
    mult_Atx(n, b->n, 1.0, K, alpha, 0.0, mean);
    kernel_diagonal(k, b->n, b->X, b->ldx, variance);
    subtract_squares(n, b->n, A, variance);
}

static void predicting_add(const void *self, const struct visit *v)
{
    const struct exact_predicting *to = self;
    const int i = v->block.first;
    exact_rows(to->z->model->kernel, to->z->M, to->alpha, &v->block, v->K, v->A,
               to->mean + i, to->variance + i);
}

struct sink exact_predicting_sink(const struct exact_predicting *self)
{
    return row_sink(self, predicting_add, 0);
}
