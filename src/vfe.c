#include <math.h>
#include "vfe.h"
#include "linalg.h"
#include "posterior.h"

static const double log_2pi = 1.837877066409345483560659472811;

double vfe_value(const struct stats *s, double s2, const double *C, const double *beta,
                 double rss)
{
    const double logdet_D = chol_logdet(s->M, C) - s->M * log(s2);
    const double c = rss / s2 + sum_squares((size_t)s->M, beta);
    return 0.5 * s->n * (log_2pi + log(s2)) + 0.5 * logdet_D + 0.5 * c +
           s->t / (2.0 * s2);
}

/* N/2 - (M - tr D^{-1})/2 - rss/(2 s2) - t/(2 s2),  D^{-1} = s2 (s2 I + G)^{-1} */
double vfe_slope_noise(const struct stats *s, double s2, const double *C, double rss,
                       double *work)
{
    chol_inverse(s->M, C, work);
    return 0.5 * (s->n - (s->M - s2 * trace(s->M, work)) - rss / s2 - s->t / s2);
}

/* Abar = ((s2 I + G)^{-1} - I/s2) A - beta v',  v = (y - A'beta) / s2 */
void vfe_adjoint(const struct inducing *z, const struct stats *s, const double *C,
                 const double *beta, double *work, struct adjoint *adjoint)
{
    const int M = s->M;
    const double s2 = z->model->s2;
    chol_inverse(M, C, adjoint->H);
    add_diagonal(M, -1.0 / s2, adjoint->H);
    posterior_adjoint(z, s, beta, -1.0 / s2, work, adjoint);
    adjoint->k_bar = 1.0 / (2.0 * s2);
}
