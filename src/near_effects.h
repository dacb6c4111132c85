#pragma once

/*
 * Grouped effects beside inducing points with nearest neighbours.  A row's neighbours bring their levels
 * along: with F of near.h (row i is scaled by the root of its weight, u_i and d_i are those without groups)
 *
 *     A+~ = (F A'; F Z)',   P = A+~ A+~' (k x k, k = M + q),   v = A+~ F y.
 *
 * These sums do not depend on the variances of the levels.
 */
#include "effects.h"

struct near_effects {
    const struct effects *e; /* every row has its levels */
    const struct source *rows;
    int s;
    const double *u, *d, *R; /* s x N, [N], M x N: r = a - A_S u */
    const int *near;         /* s x N, from 0, -1 behind the last of each */
};

/* Returns the doubles of the sums: P (upper triangle), v, |F y|^2 and sum log d. */
size_t near_effects_size(const struct effects *e);
struct sink near_effects_sink(const struct near_effects *self, double *sums);
