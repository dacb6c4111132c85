#pragma once

/* A balanced k-d tree consists of an order of n rows and of bounding boxes. Distances of the rows' coordinates, such as
 * inputs divided by lengthscales, determine their prior correlations. Node i of level v has the rows at the positions
 * from floor(n i / 2^v) to floor(n (i + 1) / 2^v) - 1. A twig is a node TWIG levels above the leaves.
 *
 * Inputs are centred before they are divided by lengthscales, so values around 1e8 keep their digits. */
#include "arena.h"
#include "block.h"
#include "coordinates.h"

#define TWIG 3  /* number of levels below a twig */
#define LEAF 64 /* largest number of rows in a leaf */
#define TILE 16 /* rows whose coordinates are read at once */

struct tree {
    const struct kernel *kernel;
    int n, with_ranks; /* number of rows; 1 if they have ranks */
    /* tree_build() sets the elements below */
    int d, levels;         /* number of coordinates; there are 2^levels leaves */
    int inputs;            /* number of coordinates before merging 0/1 inputs */
    int numbers;           /* how many coordinates are not levels of R factors */
    struct coordinate *at; /* how to compute each coordinate [d] */
    double *level;         /* levels of R factors at the rows, n x (d - numbers) */
    double *U;             /* coordinates leaf by leaf, n_l x d for n_l rows */
    float *V; /* U minus the lower ends of the leaf's box; TILE numbers more at the end */
    /* lower and upper ends [2 d] of the box of each node down to the twigs (TWIG levels above leaves) */
    double *box;
    double *low;     /* lower ends of the leaves' boxes, leaves x d */
    double *high;    /* upper ends of the leaves' boxes, leaves x d */
    double *width;   /* diagonal of each leaf's box [leaves] */
    int *row;        /* row at each position [n], from 0 */
    int *rank;       /* rank at each position [n], ascending in a leaf; or NULL */
    int *least_rank; /* smallest rank of each node [nodes]; or NULL */
    double *work;    /* scratch [n] */
};

/* Returns the squared distance of coordinates that differ by `off`: off^2, or gap > 0 for two levels of an R factor. */
static inline double squared(double off, double gap)
{
    return gap > 0.0 ? (off != 0.0 ? gap : 0.0) : off * off;
}

/* Builds the tree. For few searches (`queries`), the rows keep their order, because sorting would cost more than it
 * saves. The caller sets kernel, n and with_ranks; tree_build() reads rank [n] if with_ranks. */
void tree_build(struct tree *tree, const struct source *rows, const int *rank,
                int queries, struct arena *arena);

/* Computes the coordinates u [d] of a row x, such as inputs divided by lengthscales. */
void tree_coordinates(const struct tree *tree, struct rows x, double *u);

int tree_twigs(const struct tree *tree);

/* Returns the position, in the tree's order of rows, of the first row of node i of a level. */
static inline int tree_start(const struct tree *tree, int level, size_t i)
{
    return (int)(((unsigned long long)tree->n * i) >> level);
}
