#ifndef PFDTC_DTC_H
#define PFDTC_DTC_H

/* The DTC posterior of rows in memory: L, a pass for the sums, their factors, and a pass for the
 * residuals y - A'beta. */
#include "pass.h"
#include "posterior.h"

struct dtc {
    struct model *model; /* its jitter is raised if L needs that */
    struct inducing z;
    struct pass pass;
    double *L, *C, *beta; /* the caller's: M x M, M x M, [M] */
    struct stats stats;
    double rss;
};

/* The caller sets model, z (without L) and the pass over the rows.  most: largest jitter.  If L does
 * not exist, the sums are 0 and C is not written to. */
enum status dtc_run(struct dtc *d, double most);

#endif
