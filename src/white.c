#include "white.h"
#include "linalg.h"
#include "posterior.h"

void white_shares(const struct stats *s, const double *C, double *N)
{
    copy((size_t)s->M * s->M, s->G, N);
    solve_chol(s->M, s->M, C, N);
}

double white_transfer(int M, double s2, const double *N)
{
    double sum = 0.0;
    for (int j = 0; j < M; j++) {
        sum += N[(size_t)j * M + j];
        for (int i = 0; i < M; i++)
            sum -= N[(size_t)j * M + i] * N[(size_t)i * M + j];
    }
    return s2 * sum;
}

double white_value(const struct stats *s, double s2, double share, double transfer,
                   const double *beta, double rss)
{
    const double c = rss / s2 + sum_squares((size_t)s->M, beta);
    return s2 * (s2 * c + share * (s->t + transfer));
}

/* Abar = -2 u N (4 I - 5 N + 2 N^2) A - 2 s2 beta (y - A'beta)' */
void white_adjoint(const struct inducing *z, const struct stats *s, double share,
                   const double *N, const double *beta, double *work,
                   struct adjoint *adjoint)
{
    const int M = s->M;
    const double s2 = z->model->s2, u = share * s2;
    double *rest = work, *H = adjoint->H;

    mult_AB(M, M, M, 2.0, N, N, 0.0, rest);
    add_scaled((size_t)M * M, -5.0, N, rest);
    add_diagonal(M, 4.0, rest);
    mult_AB(M, M, M, -u, N, rest, 0.0, H);
    add_transpose(M, H); /* N and its powers are symmetric but for rounding */
    posterior_adjoint(z, s, beta, -2.0 * s2, work, adjoint);
}
