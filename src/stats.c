#include <math.h>
#include "stats.h"
#include "linalg.h"

size_t stats_size(int M, int q)
{
    return (size_t)M * M + M + (size_t)M * q;
}

void stats_init(int M, int q, double *memory, struct stats *s)
{
    fill(stats_size(M, q), 0.0, memory);
    s->M = M;
    s->q = q;
    s->G = memory;
    s->Ay = s->G + (size_t)M * M;
    s->AW = s->Ay + M;
    s->yy = s->k_sum = s->t = 0.0;
}

void stats_add(const struct kernel *k, const struct block *b, const double *A,
               const double *Wt, double *work, struct stats *s)
{
    const int M = s->M, n = b->n;
    double *ys = work, *diagonal = work + n;

    block_response(b, ys);
    add_A_At(M, n, A, s->G);               /* G  += A A'  */
    mult_Ax(M, n, 1.0, A, ys, 1.0, s->Ay); /* Ay += A y   */
    if (s->q > 0)                          /* AW += A W_x */
        mult_ABt(M, n, s->q, 1.0, A, Wt, 1.0, s->AW);
    s->yy += sum_squares((size_t)n, ys);

    kernel_diagonal(k, n, b->X, b->ldx, diagonal);
    for (int i = 0; i < n; i++) {
        const double w = b->scale == NULL ? 1.0 : b->scale[i] * b->scale[i];
        s->k_sum += w * diagonal[i];
        s->t += w * diagonal[i] - sum_squares((size_t)M, A + (size_t)i * M); /* E_ii */
    }
}

void stats_merge(const struct stats *other, struct stats *s)
{
    add_scaled(stats_size(s->M, s->q), 1.0, other->G, s->G); /* G, Ay, AW in one piece */
    s->yy += other->yy;
    s->k_sum += other->k_sum;
    s->t += other->t;
}

enum status stats_finish(struct stats *s)
{
    double sum = s->yy + s->k_sum + s->t;
    const size_t size = stats_size(s->M, s->q);
    mirror_lower(s->M, s->G);
    for (size_t i = 0; i < size; i++)
        sum += s->G[i] * 0.0; /* NaN or Inf anywhere makes it NaN */
    return isfinite(sum) ? STATUS_OK : STATUS_NOT_FINITE;
}

size_t adjoint_size(int M, int q, int with_E)
{
    return (size_t)M * M * (with_E ? 3 : 2) + 2 * (size_t)M * q + 2 * (size_t)M;
}

void adjoint_init(int M, int q, int with_E, double *memory, struct adjoint *adjoint)
{
    const size_t MM = (size_t)M * M, Mq = (size_t)M * q;
    fill(adjoint_size(M, q, with_E), 0.0, memory);
    adjoint->M = M;
    adjoint->q = q;
    adjoint->H = memory;
    adjoint->Kmm_bar = adjoint->H + MM;
    adjoint->F = adjoint->Kmm_bar + MM;
    adjoint->Wm_bar = adjoint->F + Mq;
    adjoint->f = adjoint->Wm_bar + Mq;
    adjoint->kzz_bar = adjoint->f + M;
    adjoint->E = with_E ? adjoint->kzz_bar + M : NULL;
    adjoint->k_bar = 0.0;
    adjoint->beta = NULL;
}
