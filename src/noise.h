#pragma once

/* A site is a noise model of rows. It reads the residual prior variance of a row, left = E_nn
 * >= 0, and computes a working response and scale that replace those of the row. The scale is
 * the root of a weight, and the noise is s2 / scale^2. Without a site each row keeps its own. */
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
