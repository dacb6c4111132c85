#include "gradient.h"
#include "kernel_pull.h"
#include "linalg.h"
#include "gram.h"

double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar)
{
    const int M = adjoint->M, n = b->n;
    double *e = work;
    block_response(b, e);
    mult_Atx(M, n, -1.0, A, adjoint->beta, 1.0, e);

    mult_AB(M, M, n, 1.0, adjoint->H, A, 0.0, Kmx_bar);
    if (adjoint->q > 0)
        mult_AB(M, adjoint->q, n, 1.0, adjoint->F, Wt, 1.0, Kmx_bar);
    add_xyt(M, n, 1.0, adjoint->f, e, Kmx_bar);
    if (adjoint->E != NULL)
        mult_AB(M, M, n, 1.0, adjoint->E, AK, 1.0, Kmx_bar);
    scale_columns(M, n, b->scale, Kmx_bar);
    return sum_squares((size_t)n, e);
}

/* ---- A K, by pairs of blocks ---------------------------------------------------------------- */

static size_t pairing_size(const struct pairing *p)
{
    const int M = p->pass->z->M, n = p->pass->plan.block;
    return ((size_t)2 * M + n) * n + source_size(p->pass->rows, n);
}

/* Returns A K of a block (M x n_b).  Computes it unless it is kept from an earlier call; if `again`, always. */
static const double *pairing_AK(const struct pairing *p, const struct block *here,
                                int again, double *work)
{
    const struct pass *pass = p->pass;
    const int M = pass->z->M, b = here->first / pass->plan.block;
    const size_t Mn = (size_t)M * pass->plan.block;
    double *AK = b < pass->kept ? p->AK + (size_t)b * Mn : work, *A_c = work + Mn,
           *pair = A_c + Mn,
           *scratch = pair + (size_t)pass->plan.block * pass->plan.block;
    if (b < pass->kept && !again)
        return AK;
    fill((size_t)M * here->n, 0.0, AK);
    for (int c = 0; c < pass->plan.n_blocks; c++) {
        const struct block there = pass_block(pass, c, scratch);
        pairs_add(pass->z->model->kernel, here, &there, M, pass_A(pass, &there, A_c),
                  pair, AK);
    }
    return AK;
}

static void pairing_add(const void *self, const struct visit *v)
{
    const struct pairing *p = self;
    const int M = p->pass->z->M;
    const double *AK = pairing_AK(p, &v->block, 1, v->work);
    mult_ABt(M, v->block.n, M, 1.0, AK, v->A, 1.0, v->sums);
}

struct sink pairing_sink(const struct pairing *self, double *W0)
{
    const size_t M = (size_t)self->pass->z->M;
    return sum_sink(self, pairing_add, 0, pairing_size(self), M * M, W0);
}

/* ---- dZ and dtheta -------------------------------------------------------------------------- */

static size_t theta_at(const struct inducing *z)
{
    return (size_t)z->M * z->columns;
}

size_t gradient_size(const struct inducing *z)
{
    return theta_at(z) + (size_t)z->model->kernel->n_theta + 1;
}

/* Computes the derivative Kmx_bar in the block's K, at the start of the scratch. */
static void pulling_bar(const struct pulling *p, const struct visit *v)
{
    const struct block *b = &v->block;
    double *Kmx_bar = v->work, *part = Kmx_bar + (size_t)p->z->M * b->n,
           *scratch = part + b->n + kernel_size(p->z->model->kernel, p->z->M);
    const double *Wt = panel_rows(&p->panel, b, scratch), *AK = NULL;
    if (p->pairing != NULL)
        AK = pairing_AK(p->pairing, b, 0, scratch + panel_size(&p->panel, b->n));
    v->sums[gradient_size(p->z) - 1] +=
        gradient_block(p->adjoint, b, v->A, Wt, AK, part, Kmx_bar);
}

static void pulling_add(const void *self, const struct visit *v)
{
    const struct pulling *p = self;
    const struct inducing *z = p->z;
    const struct block *b = &v->block;
    const double *Kmx_bar = v->work;
    double *work = v->work + (size_t)z->M * b->n, *dtheta = v->sums + theta_at(z);
    pulling_bar(p, v);
    kernel_pull(z->model->kernel, points_of(z), rows_of(b), v->K, Kmx_bar, work, v->sums,
                p->with_theta ? dtheta : NULL);
    if (!p->with_theta || kernel_is_constant(z->model->kernel))
        return;
    for (int i = 0; i < b->n; i++)
        work[i] = weight_of(b->scale, i);
    kernel_pull_diagonal(z->model->kernel, rows_of(b), *p->adjoint->k_bar, work, 1, NULL,
                         dtheta);
}

struct sink gradient_sink(const struct pulling *self, double *sums)
{
    const size_t M = (size_t)self->z->M;
    return sum_sink(self, pulling_add, M + 1 + panel_size(&self->panel, 1),
                    kernel_size(self->z->model->kernel, self->z->M) +
                        (self->pairing != NULL ? pairing_size(self->pairing) : 0),
                    gradient_size(self->z), sums);
}

void gradient_finish(const struct pulling *self, double k_sum, double *sums)
{
    const struct inducing *z = self->z;
    const struct adjoint *a = self->adjoint;
    double *dtheta = self->with_theta ? sums + theta_at(z) : NULL;
    kernel_pull_self(z->model->kernel, z->columns, points_of(z), z->jitter, a->Kmm_bar,
                     self->arena, sums, dtheta);
    if (!kernel_is_constant(z->model->kernel))
        kernel_pull_diagonal(z->model->kernel, points_of(z), 1.0, a->kzz_bar, 1, sums,
                             dtheta);
    else if (dtheta != NULL) /* if k(x, x) varies, pulling_add() has added this part */
        dtheta[z->model->kernel->term->at] += *a->k_bar * k_sum;
}
