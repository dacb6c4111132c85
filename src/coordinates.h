#ifndef PFDTC_COORDINATES_H
#define PFDTC_COORDINATES_H

/*
 * Coordinates whose distances follow the kernel: (x - x_1) / l for a lengthscale, a point on a circle
 * for a period, and so on.  In a sum each is multiplied by the share of its term in the prior
 * variance.  For one stationary factor they are its scaled inputs.
 */
#include "kernel.h"

struct coordinate {
    int column;
    double rate;   /* factor of the difference, or radius of the circle */
    double period; /* 0: none; < 0: the sine, > 0: the cosine */
};

int kernel_n_coordinates(const struct kernel *k);
/* Fills at [n_coordinates]; returns their number (a column that terms share counts once). */
int kernel_coordinates(const struct kernel *k, struct coordinate *at);
double coordinate_of(const struct coordinate *at, double x, double centre);

#endif
