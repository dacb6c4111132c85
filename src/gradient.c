#include "gradient.h"
#include "linalg.h"

double gradient_block(const struct adjoint *adjoint, const struct block *b,
                      const double *A, const double *Wt, const double *AK, double *work,
                      double *Kmx_bar)
{
    const int M = adjoint->M, n = b->n;
    double *e = work;
    block_response(b, e);
    if (adjoint->beta != NULL)
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
