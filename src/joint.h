#ifndef PFDTC_JOINT_H
#define PFDTC_JOINT_H

/*
 * Several rows x together, each beside its near rows: given the inducing variables,
 * f(x) - u'(y_S - A_S'.) is the part of the prior that the near rows leave, whose covariance
 * W'(K + noise)W - r'r~ needs no more than the weights W of each x: 1 on itself, -u on its near
 * rows (times the roots of their weights).
 */
#include "arena.h"
#include "kernel.h"
#include "sink.h"

struct joint {
    const struct kernel *kernel;
    int n, n_points; /* columns of W, and its rows: points with any weight */
    double *X;       /* n_points rows */
    double *noise;   /* [n_points] s2 / weight of a row, 0 of an x */
    int *start;      /* [n_points + 1] the entries of each point, in: */
    int *column;     /* from 0 */
    double *weight;
    int *place; /* of the rows among the points */
};

/* room for n rows x, each with at most s near ones of N */
void joint_open(struct joint *j, const struct kernel *k, int n, int N, int s,
                struct arena *arena);
/* The points, every row of `rows` that is near to one of `x`, then those.  near (s x n): from 1, 0
 * behind the last; u beside it. */
void joint_points(struct joint *j, const struct source *rows, const struct source *x,
                  double s2, int s, const int *near, const double *u);

/* W'(K + noise)W, a pass over the points by blocks */
struct sink joint_sink(const struct joint *self, double *covariance);
/* Cov(f(x), f(x~)) = r'(C C')^{-1} r~ - r'r~ + that, and the variances given.  R (M x n) is lost */
void joint_finish(const struct joint *j, int M, const double *C, double *R,
                  const double *var_near, const double *var_far, double *covariance);

#endif
