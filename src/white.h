#ifndef PFDTC_WHITE_H
#define PFDTC_WHITE_H

/*
 * The pF objective under white noise around the mean of the exact posterior: nu has independent
 * values with variance u / w_n at row n, u = share * s2, and variance 0 at Z.  (I) and (II) of the
 * proposition are then u tr E and u tr S, and with the mean's error measured in the norm whose
 * kernel is the posterior covariance,
 *
 *     s2^2 d^2 + s2^2 y'(K + s2 I)^{-1} y = s2^2 c + u (t + tr(G D^{-2})),
 *     c = y'(Q + s2 I)^{-1} y = rss / s2 + |beta|^2
 */
#include "stats.h"

/* N (M x M) = I - D^{-1} = (s2 I + G)^{-1} G, by which the data reduce the prior variance in each
 * direction; C from posterior_factor() */
void white_shares(const struct stats *s, const double *C, double *N);

/* tr(G D^{-2}) = s2 tr(N - N^2) */
double white_transfer(int M, double s2, const double *N);

/* beta from posterior_factor(), rss = |y - A'beta|^2 */
double white_value(const struct stats *s, double s2, double share, double transfer,
                   const double *beta, double rss);

/* The adjoints of the sums; beta is kept by reference.  scratch: M^2 */
void white_adjoint(const struct inducing *z, const struct stats *s, double share,
                   const double *N, const double *beta, double *work,
                   struct adjoint *adjoint);

#endif
