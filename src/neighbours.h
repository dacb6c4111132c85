#pragma once

/* Finds the nearest neighbours of a row: smaller distances of coordinates (tree.h) mean larger prior correlations. If
 * rows have ranks, neighbours have lower ranks than the row. Of two rows at equal distance, the row with the smaller
 * number comes first, so the result depends neither on the tree nor on threads. */
#include "sink.h"
#include "tree.h"

/* Finds the s nearest neighbours of a point with coordinates u, nearest first: their numbers row [s], from 0, and
 * squared distances r2 [s]. Row `self` is left out (-1: no row is). If the tree has ranks, which order its rows,
 * neighbours have ranks below `below`. Returns the number of neighbours found. */
int tree_nearest(const struct tree *tree, const double *u, int s, int self, int below,
                 double *r2, int *row);

/* This sink finds the neighbours of each row of a pass. For each row, `near` has s elements: the numbers of its
 * neighbours, from 1, then zeros. A row far from all data has up to s neighbours, others up to `few`. */
struct finding {
    const struct tree *tree;
    int s, few;
    const int *row;  /* numbers of the pass's rows in the tree; NULL for new rows */
    const int *rank; /* ranks of all rows: neighbours have lower ranks; or NULL */
    int *near;
};
struct sink finding_sink(const struct finding *self);
