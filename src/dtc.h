#ifndef PFDTC_DTC_H
#define PFDTC_DTC_H

/* The DTC posterior of rows at hand: L, the sums of a first pass, their factors, and the residuals
 * y - A'beta in a second. */
#include "pass.h"
#include "posterior.h"

struct dtc {
    struct model *model; /* its jitter is raised where L wants that */
    struct inducing z;
    struct pass pass;
    double *L, *C, *beta; /* the caller's: M x M, M x M, [M] */
    struct stats stats;
    double rss;
};

/* model, z (without L) and the pass over the rows are there.  most: of the jitter.  Sums are there
 * (0) and C is not touched where there is no L. */
enum status dtc_run(struct dtc *d, double most);

#endif
