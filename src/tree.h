#pragma once

/*
 * A balanced k-d tree of rows in the coordinates of a kernel, with the bounding box of every node.
 *
 * The tree consists of an order of the n rows and of the boxes.  Node i of level v has the rows at the positions from
 * floor(n i / 2^v) to floor(n (i + 1) / 2^v) - 1.  A twig is a node TWIG levels above the leaves.
 *
 * Inputs are centred before they are divided by lengthscales, so values around 1e8 keep their digits.
 */
#include "arena.h"
#include "block.h"
#include "kernel.h"

/* A coordinate of rows.  The prior correlation of two rows decreases with the distance of their coordinates: (x - x_1)
 * / l for a lengthscale l, a point on a circle for a period, and so on.  If the kernel has several terms, a coordinate
 * is multiplied by the root of its term's share in the prior variance. */
struct coordinate {
    int column;
    double rate; /* factor of x - x_1, or radius of the circle */
    double
        period; /* 0 if x has none; if > 0, the coordinate is a cosine, if < 0 a sine */
};

/* Returns the largest possible number of coordinates. */
int kernel_n_coordinates(const struct kernel *k);
/* Computes at[] and returns the number of coordinates.  Factors with the same column and period share a coordinate. */
int kernel_coordinates(const struct kernel *k, struct coordinate *at);

#define TWIG 3  /* number of levels below a twig */
#define LEAF 64 /* largest number of rows in a leaf */
#define TILE 16 /* rows of V that are read at once */

struct tree {
    const struct kernel *kernel;
    int n, with_ranks; /* number of rows; 1 if they have ranks */
    /* set by tree_build() */
    int d, levels;         /* number of coordinates; there are 2^levels leaves */
    double *centre;        /* inputs of the first row [d] */
    struct coordinate *at; /* how to compute each coordinate [d] */
    double *U;             /* coordinates leaf by leaf, n_l x d for n_l rows */
    float *V; /* U minus the lower ends of the leaf's box; TILE numbers more at the end */
    /* lower and upper ends of the boxes of nodes down to the twigs, [2 d] each */
    double *box;
    double *low;     /* lower ends of the leaves' boxes, leaves x d */
    double *high;    /* upper ends of the leaves' boxes, leaves x d */
    double *width;   /* diagonal of each leaf's box [leaves] */
    int *row;        /* row at each position [n], from 0 */
    int *rank;       /* rank at each position [n], ascending in a leaf; or NULL */
    int *least_rank; /* smallest rank of each node [nodes]; or NULL */
    double *work;    /* scratch [n] */
};

/* Builds the tree for a number of queries. If they are few, the rows keep their order, because sorting would cost more
 * than it saves. The caller sets kernel, n and with_ranks; rank [n] is read if with_ranks. */
void tree_build(struct tree *tree, const struct source *rows, const int *rank,
                int queries, struct arena *arena);

/* Computes the coordinates u [d] of a row x. */
void tree_coordinates(const struct tree *tree, struct rows x, double *u);

int tree_twigs(const struct tree *tree);

/* Returns the first position of node i of a level; it ends where node i + 1 begins. */
static inline int tree_start(const struct tree *tree, int level, size_t i)
{
    return (int)(((unsigned long long)tree->n * i) >> level);
}
