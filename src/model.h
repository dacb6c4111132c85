#ifndef PFDTC_MODEL_H
#define PFDTC_MODEL_H

#include "kernel.h"

/* A Gaussian process with noise, in the units of the scaled data. */
struct model {
    const struct kernel *kernel;
    double s2;     /* variance of the noise of a row of weight 1 */
    double jitter; /* on k(Z, Z), relative to the variance of each point */
};

#endif
