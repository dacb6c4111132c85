#pragma once

/*
 * The joint covariance of several rows x, each conditioned on its nearest rows.  Given the inducing
 * variables, the residual f(x) - u'(y_S - A_S'.) has the covariance W'(K + noise)W - r'r~.  The
 * weights W of each x are 1 on itself and -u on its nearest rows (times the roots of their
 * weights).
 */
#include "arena.h"
#include "kernel.h"
#include "sink.h"

struct joint {
    const struct kernel *kernel;
    int n, n_points; /* columns and rows of W; a point has some weight */
    double *X;       /* n_points rows */
    double *noise;   /* [n_points] s2 / weight for a row, 0 for an x */
    int *start;      /* [n_points + 1] the entries of each point, in: */
    int *column;     /* from 0 */
    double *weight;
    int *place; /* place of each row among the points */
};

/* Lays out room for n rows x, each with at most s nearest rows of N. */
void joint_open(struct joint *j, const struct kernel *k, int n, int N, int s,
                struct arena *arena);
/* Sets the points: every row of `rows` that is a neighbour of some x, then the rows x.  near
 * (s x n): neighbours from 1, 0 behind the last; u: their weights. */
void joint_points(struct joint *j, const struct source *rows, const struct source *x,
                  double s2, int s, const int *near, const double *u);

/* W'(K + noise)W, a pass over the points by blocks */
struct sink joint_sink(const struct joint *self, double *covariance);
/* Cov(f(x), f(x~)) = r'(C C')^{-1} r~ - r'r~ + that, and the variances given.  R (M x n) is lost */
void joint_finish(const struct joint *j, int M, const double *C, double *R,
                  const double *var_near, const double *var_far, double *covariance);
