#pragma once

#include "kernel.h"

/* The prior correlation of two rows decreases with the distance of their coordinates. A coordinate is (x - x_1) / l for
 * an input x with lengthscale l and the value x_1 at the first row, or a point on a circle for a period. If the kernel
 * has several terms, a coordinate is multiplied by the root of its term's share in the prior variance. */
struct coordinate {
    int column;
    int levels; /* number of an R factor's 0/1 inputs if its level is the coordinate; or 0 */
    /* multiplies x - x_1; for a period, the radius of its circle; negative if the column has numbers of levels */
    double rate;
    double period; /* 0: none; above 0, the coordinate is a cosine, below 0 a sine */
    double centre; /* x_1, from tree_build() */
    double gap; /* squared distance of two levels; or 0, from tree_build() as `levels` */
};

/* Returns the largest possible number of coordinates of a kernel. */
int kernel_n_coordinates(const struct kernel *k);
/* Computes a kernel's coordinates `at`, and returns their number. Factors with equal column and period share one. */
int kernel_coordinates(const struct kernel *k, struct coordinate *at);
