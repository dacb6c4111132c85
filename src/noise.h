#ifndef PFDTC_NOISE_H
#define PFDTC_NOISE_H

/*
 * Sites: what a row's noise is to the sums.  Of the rows of a block, from what the points leave
 * of their prior variance, left = E_nn (not below 0), a site says the response and the scale
 * (root of the weight, noise s2 / scale^2) that they are worked with, in the place of those they
 * came with.  Without a site these stay.
 */
#include "block.h"

struct site;
typedef void site_working(const struct site *site, const struct block *b,
                          const double *left, double *y, double *scale);
struct site {
    site_working *working;
    double s2;
};

/* The site of that name, or NULL:
 *   fitc   (Snelson and Ghahramani 2006) row n has the noise s2 / w_n + E_nn */
site_working *site_named(const char *name);

#endif
