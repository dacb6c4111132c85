#include "white.h"
#include "linalg.h"
#include "posterior.h"

/* X = D^{-1}, in which G D^{-2} = s2 (X - X^2) */
static void inverse_D(int M, double s2, const double *C, double *X)
{
    posterior_inverse(M, C, X);
    for (size_t i = 0; i < (size_t)M * M; i++)
        X[i] *= s2;
}

double white_value(const struct stats *s, double s2, double share, const double *C,
                   const double *beta, double rss, double *work)
{
    const int M = s->M;
    const double c = rss / s2 + sum_squares((size_t)M, beta);
    inverse_D(M, s2, C, work);
    const double transfer = s2 * (trace(M, work) - sum_squares((size_t)M * M, work));
    return s2 * (s2 * c + share * (s->t + transfer));
}

/* Abar = 2 u (2 X^3 - X^2 - I) A - 2 s2 beta (y - A'beta)' */
void white_adjoint(const struct inducing *z, const struct stats *s, double s2,
                   double share, const double *C, const double *beta, double *work,
                   struct adjoint *adjoint)
{
    const int M = s->M;
    const size_t MM = (size_t)M * M;
    const double u = share * s2;
    double *X = work, *X2 = work + MM, *H = adjoint->H;

    inverse_D(M, s2, C, X);
    mult_AB(M, M, M, 1.0, X, X, 0.0, X2);
    mult_AB(M, M, M, 4.0 * u, X2, X, 0.0, H);
    add_scaled(MM, -2.0 * u, X2, H);
    for (int m = 0; m < M; m++)
        H[(size_t)m * M + m] -= 2.0 * u;
    posterior_adjoint(z, s, s2, beta, -2.0 * s2, work, adjoint);
}
