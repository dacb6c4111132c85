#ifndef PFDTC_COORDINATES_H
#define PFDTC_COORDINATES_H

/*
 * Coordinates in which rows that the kernel calls near are near: (x - x_1) / l of a lengthscale, a
 * point on a circle of a period, and so on; of a sum, each with the share of its term in the
 * prior variance.  Of one stationary factor they are its own scaled inputs.
 */
#include "kernel.h"

struct coordinate {
    int column;
    double rate;   /* of the difference, or the circle's radius */
    double period; /* 0: none; < 0: the sine, > 0: the cosine */
};

int kernel_n_coordinates(const struct kernel *k);
/* at [n_coordinates]; returns how many there are (columns that terms share are one) */
int kernel_coordinates(const struct kernel *k, struct coordinate *at);
double coordinate_of(const struct coordinate *at, double x, double centre);

#endif
