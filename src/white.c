#include "white.h"
#include "linalg.h"
#include "posterior.h"

/* N = I - D^{-1} = (s2 I + G)^{-1} G */
static void share_of_Q(const struct stats *s, const double *C, double *N)
{
    copy((size_t)s->M * s->M, s->G, N);
    solve_chol(s->M, s->M, C, N);
}

double white_value(const struct stats *s, double s2, double share, const double *C,
                   const double *beta, double rss, double *work)
{
    const int M = s->M;
    const size_t MM = (size_t)M * M;
    const double c = rss / s2 + sum_squares((size_t)M, beta);
    double *X = work,
           *XG = work + MM; /* tr(G D^{-2}) = s2^2 tr(X G X), X = D^{-1} / s2 */
    posterior_inverse(M, C, X);
    mult_AB(M, M, M, 1.0, X, s->G, 0.0, XG);
    return s2 * (s2 * c + share * (s->t + s2 * s2 * dot(MM, X, XG)));
}

/* Abar = -2 u N (4 I - 5 N + 2 N^2) A - 2 s2 beta (y - A'beta)' */
void white_adjoint(const struct inducing *z, const struct stats *s, double s2,
                   double share, const double *C, const double *beta, double *work,
                   struct adjoint *adjoint)
{
    const int M = s->M;
    const size_t MM = (size_t)M * M;
    const double u = share * s2;
    double *N = work, *rest = work + MM, *H = adjoint->H;

    share_of_Q(s, C, N);
    mult_AB(M, M, M, 2.0, N, N, 0.0, rest);
    add_scaled(MM, -5.0, N, rest);
    for (int m = 0; m < M; m++)
        rest[(size_t)m * M + m] += 4.0;
    mult_AB(M, M, M, -u, N, rest, 0.0, H);
    add_transpose(M, H); /* N and its powers are symmetric but for rounding */
    posterior_adjoint(z, s, s2, beta, -2.0 * s2, work, adjoint);
}
