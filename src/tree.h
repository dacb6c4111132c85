#pragma once

/*
 * Rows in the coordinates of a kernel, (x - x_1) / l of one stationary factor: a balanced k-d tree
 * with the bounding box of every node.
 *
 * Node i of level v holds the positions from floor(n i / 2^v) to floor(n (i + 1) / 2^v), so the
 * tree is an order of the rows and its boxes.  A twig is a node with TWIG levels
 * below, whose leaves' boxes lie side by side.
 *
 * Inputs are centred before they are divided, so that those around 1e8 keep their digits.
 */
#include "arena.h"
#include "block.h"
#include "kernel.h"

/* Rows have coordinates whose distances follow the kernel: (x - x_1) / l for a lengthscale, a
 * point on a circle for a period, and so on. In a sum of terms, each coordinate is multiplied
 * by the share of its term in the prior variance. One stationary factor has its scaled inputs
 * as coordinates. */
struct coordinate {
    int column;
    double rate;   /* factor of the difference, or radius of the circle */
    double period; /* 0: none; < 0: the sine, > 0: the cosine */
};

int kernel_n_coordinates(const struct kernel *k);
/* Fills at [n_coordinates]; returns their number (a column that terms share counts once). */
int kernel_coordinates(const struct kernel *k, struct coordinate *at);

#define TWIG 3  /* levels below a twig */
#define LEAF 64 /* rows in a leaf, at most */
#define TILE 16 /* rows of V read at once */

struct tree {
    const struct kernel *kernel;
    int n, with_ranks; /* number of rows; 1 if they have ranks */
    /* set by tree_build() */
    int d, levels;         /* coordinates; 2^levels leaves */
    double *centre;        /* [d] the first row */
    struct coordinate *at; /* [d] how each is computed */
    double *U;             /* coordinates, in the order of the tree: n_l x d a leaf */
    float *V;              /* the same less the leaf's lower ends; TILE more at the end */
    double *box;           /* [2 d] a node down to the twigs: lower, upper ends */
    double *low;           /* leaves x d: lower ends of the leaves' boxes */
    double *high;          /* leaves x d: upper ends */
    double *width;         /* [leaves] length of the box's diagonal */
    int *row;              /* [n] the row at each position, from 0 */
    int *rank;             /* [n] its rank, ascending in a leaf; or NULL */
    int *least_rank;       /* [nodes]; or NULL */
    double *work;          /* [n] */
};

/* Builds the tree for so many queries.  For few queries the rows keep their order, and a query
 * reads all of them.  rank: [n], read if with_ranks.  The caller sets kernel, n, with_ranks. */
void tree_build(struct tree *tree, const struct source *rows, const int *rank,
                int queries, struct arena *arena);

/* Computes the coordinates u [d] of a row x. */
void tree_coordinates(const struct tree *tree, struct rows x, double *u);

/* Returns the level of the twigs. */
int tree_twigs(const struct tree *tree);

/* Returns the first position of node i of a level; it ends where node i + 1 begins. */
static inline int tree_start(const struct tree *tree, int level, size_t i)
{
    return (int)(((unsigned long long)tree->n * i) >> level);
}
