#pragma once

#include "kernel.h"

/* The prior correlation of two rows decreases with the distance of their coordinates. A coordinate is (x - x_1) / l for
 * an input x with lengthscale l and the value x_1 at the first row, or a point on a circle for a period. If the kernel
 * has several terms, a coordinate is multiplied by the root of its term's share in the prior variance. */
struct coordinate {
    int column;
    int levels; /* if the coordinate is the level of an R factor in 0/1 inputs, their number; else 0 */
    /* 1 / l, which multiplies x - x_1; for a period, the radius of its circle; negative if x is a level's number */
    double rate;
    double period; /* 0: none; above 0, the coordinate is a cosine, below 0 a sine */
    double centre; /* x_1, from tree_build() */
    double gap; /* squared distance of two levels, or 0; tree_build() sets gap, levels */
};

/* Returns the largest possible number of coordinates of a kernel. */
int kernel_n_coordinates(const struct kernel *k);
/* Computes a kernel's coordinates `at`, and returns their number. There is one for each pair of column and period. */
int kernel_coordinates(const struct kernel *k, struct coordinate *at);
