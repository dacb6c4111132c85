#pragma once

/* Finds the nearest rows in the coordinates of a kernel with the tree, among all rows or among
 * rows of a lower rank. If two rows are at equal distance, the one with the smaller number
 * comes first. So the result depends neither on the tree nor on threads. */
#include "sink.h"
#include "tree.h"

/* The s rows nearest to u, nearest first, of those that have a rank below `below` (read where
 * the tree has ranks) and are not row `self` (-1: none is left out).  row [s]: from 0; r2 [s]:
 * squared distances.  Returns how many there are. */
int tree_nearest(const struct tree *tree, const double *u, int s, int self, int below,
                 double *r2, int *row);

/* A sink finds the nearest rows of each row of a pass: near [s] has their numbers from 1, and 0
 * behind the last. A row far from all data has s neighbours, because few of them lie on one
 * side of it. Any other row has `few`. */
struct finding {
    const struct tree *tree;
    int s, few;      /* few <= s */
    const int *row;  /* of each query, left out itself; NULL: queries are other rows */
    const int *rank; /* of all rows: lower ranks alone; NULL: any */
    int *near;
};
struct sink finding_sink(const struct finding *self);
