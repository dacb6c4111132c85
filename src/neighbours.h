#ifndef PFDTC_NEIGHBOURS_H
#define PFDTC_NEIGHBOURS_H

/*
 * Nearest rows in the coordinates of a kernel, (x - x_1) / l of one stationary factor, among all rows or among those of a
 * lower rank: a balanced k-d tree with the bounding box of every node.
 *
 * Node i of level v holds the positions from floor(n i / 2^v) to floor(n (i + 1) / 2^v), so the
 * tree is nothing but an order of the rows and its boxes.  Equal distances are decided by the
 * number of the row: what is found depends neither on the tree nor on threads.  The last levels
 * are gone through at once: a twig is a node with TWIG levels below, whose leaves' boxes lie
 * side by side.
 *
 * Inputs are centred before they are divided, so that those around 1e8 keep their digits.
 */
#include "coordinates.h"
#include "sink.h"

struct tree {
    int n, d, levels;     /* 2^levels leaves                                        */
    const double *centre; /* [d] the first row                                      */
    const struct coordinate *at; /* [d] what each is                                 */
    const double *U;       /* n x d coordinates, in the order of the tree            */
    const double *box;     /* [2 d] a node down to the twigs: lower, upper ends      */
    const double *low;     /* leaves x d: lower ends of the leaves' boxes            */
    const double *high;    /* leaves x d: upper ends                                 */
    const int *row;        /* [n] the row at each position, from 0                   */
    const int *rank;       /* [n] its rank, ascending in a leaf; or NULL             */
    const int *least_rank; /* [nodes]; or NULL                                       */
};

/* doubles and ints that tree_build lays the tree out in, and its doubles of scratch */
size_t tree_doubles(int n, int d);
size_t tree_ints(int n);
size_t tree_work(int n);

/* The tree of the n rows of X (leading dimension ldx), for so many queries: few leave the rows
 * in their order, and look at all of them.  rank: [n] or NULL. */
void tree_build(const struct kernel *k, int n, const double *X, int ldx, const int *rank,
                int queries, double *doubles, int *ints, double *work, struct tree *tree);

/* u [d] = the coordinates of a row x with leading dimension ldx */
void tree_coordinates(const struct tree *tree, const double *x, int ldx, double *u);

/* The s rows nearest to u, nearest first, of those that have a rank below `below` (read where
 * the tree has ranks) and are not row `self` (-1: none is left out).  row [s]: from 0; r2 [s]:
 * squared distances.  Returns how many there are. */
int tree_nearest(const struct tree *tree, const double *u, int s, int self, int below,
                 double *r2, int *row);

/* The s nearest rows to those of a pass, as a sink: near [s] a row, from 1, 0 behind the last. */
struct finding {
    const struct tree *tree;
    int s;
    const int *row;  /* of each query, left out itself; NULL: queries are other rows */
    const int *rank; /* of all rows: lower ranks alone; NULL: any                    */
    int *near;
};
struct sink finding_sink(const struct finding *self);

#endif
