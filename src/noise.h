#pragma once

/*
 * Sites: noise models of rows.  From the residual prior variance of a row, left = E_nn (at least 0),
 * a site computes the working response and scale (root of the weight; the noise is s2 / scale^2)
 * that replace those of the row.  Without a site the row keeps its own.
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
