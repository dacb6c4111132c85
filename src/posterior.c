#include <math.h>
#include "posterior.h"
#include "linalg.h"

enum status posterior_factor(const struct stats *s, double s2, double *C, double *beta)
{
    const int M = s->M;
    if (chol_shifted(M, s->G, s2, C))
        return STATUS_INNER_NOT_PD;
    copy((size_t)M, s->Ay, beta);
    solve_chol(M, 1, C, beta);
    return STATUS_OK;
}

void posterior_adjoint(const struct inducing *z, const struct stats *s,
                       const double *beta, double factor, double *work,
                       struct adjoint *adjoint)
{
    const int M = s->M;
    const double s2 = z->model->s2;
    double *Lbar = work;
    mult_AB(M, M, M, -1.0, adjoint->H, s->G, 0.0, Lbar);
    add_xyt(M, M, -factor * s2, beta, beta, Lbar); /* A (y - A'beta) = s2 beta */
    solve_lower_t(M, M, z->L, Lbar);
    chol_adjoint(M, z->L, Lbar, adjoint->Kmm_bar);

    solve_lower_t(M, M, z->L, adjoint->H);
    for (int m = 0; m < M; m++)
        adjoint->f[m] = factor * beta[m];
    solve_lower_t(M, 1, z->L, adjoint->f);
    copy((size_t)M, beta, adjoint->beta);
}

static void predict_block(const void *self, const struct visit *v)
{
    const struct predicting *to = self;
    const struct posterior *p = to->posterior;
    const struct block *b = &v->block;
    const int M = p->z.M, n = b->n;
    double *unexplained = to->unexplained + b->first;
    mult_Atx(M, n, 1.0, p->C == NULL ? v->K : v->A, p->beta, 0.0, to->mean + b->first);
    if (p->z.L == NULL)
        fill((size_t)n, NAN, unexplained);
    else
        inducing_unexplained(&p->z, b, v->A, unexplained);
    if (p->C == NULL)
        return;
    double *sor_variance = to->sor_variance + b->first;
    solve_lower_squares(M, n, p->C, v->A, v->work, sor_variance);
    scale_by((size_t)n, p->z.model->s2, sor_variance);
}

struct sink predicting_sink(const struct predicting *self)
{
    const struct posterior *p = self->posterior;
    return row_sink(self, predict_block, p->C == NULL ? 0 : (size_t)p->z.M, 0);
}

static void residual_block(const void *self, const struct visit *v)
{
    const struct residuals *to = self;
    const int n = v->block.n;
    double *e = to->v == NULL ? v->work : to->v + v->block.first;
    block_response(&v->block, e);
    mult_Atx(to->M, n, -1.0, v->A, to->beta, 1.0, e); /* e = y - A'beta */
    *v->sums += sum_squares((size_t)n, e);
    for (int i = 0; i < n && to->v != NULL; i++)
        e[i] /= to->s2;
    if (to->Av != NULL)
        mult_Ax(to->M, n, 1.0, v->A, e, 0.0, to->Av + (size_t)v->number * to->M);
}

struct sink residuals_sink(const struct residuals *self, double *rss)
{
    return sum_sink(self, residual_block, 1, 0, 1, rss);
}

static void response_add(const void *self, const struct visit *v)
{
    const int M = *(const int *)self;
    double *ys = v->work;
    block_response(&v->block, ys);
    mult_Ax(M, v->block.n, 1.0, v->A, ys, 1.0, v->sums);
    v->sums[M] += sum_squares((size_t)v->block.n, ys);
}

struct sink response_sink(const int *M, double *sums)
{
    return sum_sink(M, response_add, 1, 0, (size_t)*M + 1, sums);
}

void posterior_covariance(const struct posterior *p, const struct block *b, int sor,
                          double *work, double *covariance)
{
    const int M = p->z.M, n = b->n;
    double *A = work;
    inducing_features(&p->z, b, A);
    kernel_cross(p->z.model->kernel, rows_of(b), rows_of(b), covariance);
    if (sor)
        fill((size_t)n * n, 0.0, covariance);
    else
        mult_AtB(n, M, n, -1.0, A, A, 1.0, covariance);
    if (p->C != NULL) {
        solve_lower(M, n, p->C, A);
        mult_AtB(n, M, n, p->z.model->s2, A, A, 1.0, covariance);
    }
    mirror_lower(n, covariance);
}
