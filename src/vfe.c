#include <math.h>
#include "vfe.h"
#include "linalg.h"

static const double log_2pi = 1.837877066409345483560659472811;

double vfe_value(double n_rows, const struct stats *s, double s2, const double *C,
                 const double *beta, double rss)
{
    const double logdet_D = chol_logdet(s->M, C) - s->M * log(s2);
    const double c = rss / s2 + sum_squares((size_t)s->M, beta);
    return 0.5 * n_rows * (log_2pi + log(s2)) + 0.5 * logdet_D + 0.5 * c +
           s->t / (2.0 * s2);
}

/* inverse = (C C')^{-1} */
static void invert(int M, const double *C, double *inverse)
{
    fill((size_t)M * M, 0.0, inverse);
    for (int m = 0; m < M; m++)
        inverse[(size_t)m * M + m] = 1.0;
    solve_chol(M, M, C, inverse);
}

/* N/2 - (M - tr D^{-1})/2 - rss/(2 s2) - t/(2 s2),  D^{-1} = s2 (s2 I + G)^{-1} */
double vfe_slope_noise(double n_rows, const struct stats *s, double s2, const double *C,
                       double rss, double *work)
{
    invert(s->M, C, work);
    return 0.5 * (n_rows - (s->M - s2 * trace(s->M, work)) - rss / s2 - s->t / s2);
}

/*
 * Abar  = ((s2 I + G)^{-1} - I/s2) A - beta v',   v = e / s2
 * Abar A' = ((s2 I + G)^{-1} - I/s2) G - beta beta'                      since A v = beta
 * Lbar  = -tril(L^{-T} Abar A'),   Kmx_bar = L^{-T} Abar
 */
void vfe_adjoint(const struct inducing *z, const struct stats *s, double s2,
                 const double *C, const double *beta, double *work,
                 struct adjoint *adjoint)
{
    const int M = s->M;
    double *Hs = adjoint->H, *Lbar = work;

    invert(M, C, Hs);
    for (int m = 0; m < M; m++)
        Hs[(size_t)m * M + m] -= 1.0 / s2;

    mult_AB(M, M, M, -1.0, Hs, s->G, 0.0, Lbar);
    add_xyt(M, M, 1.0, beta, beta, Lbar);
    solve_lower_t(M, M, z->L, Lbar);
    for (int j = 1; j < M; j++)
        fill((size_t)j, 0.0, Lbar + (size_t)j * M);
    chol_adjoint(M, z->L, Lbar, adjoint->Kmm_bar);

    solve_lower_t(M, M, z->L, Hs);
    copy((size_t)M, beta, adjoint->f);
    for (int m = 0; m < M; m++)
        adjoint->f[m] *= -1.0 / s2;
    solve_lower_t(M, 1, z->L, adjoint->f);
    adjoint->beta = beta;
    adjoint->k_bar = 1.0 / (2.0 * s2);
}
