#ifndef PFDTC_VFE_H
#define PFDTC_VFE_H

/*
 * The variational bound of Titsias (2009), as a value to minimise:
 *
 *     -ELBO = N/2 log(2 pi s2) + log det D / 2 + c / 2 + t / (2 s2)
 *
 * with c = y'(Q + s2 I)^{-1} y = rss / s2 + |beta|^2, rss = |y - A'beta|^2 summed in the
 * second pass, so that nothing cancels near interpolation.
 */
#include "stats.h"

/* Returns the four terms of the value from the sums, C and beta of posterior_factor(), and rss. */
double vfe_value(const struct stats *s, double s2, const double *C, const double *beta,
                 double rss);

/* d(-ELBO) / d log s2 at fixed Z and kernel; scratch: M^2 */
double vfe_slope_noise(const struct stats *s, double s2, const double *C, double rss,
                       double *work);

/* The adjoints of the sums; beta is kept by reference.  scratch: M^2 */
void vfe_adjoint(const struct inducing *z, const struct stats *s, const double *C,
                 const double *beta, double *work, struct adjoint *adjoint);

#endif
