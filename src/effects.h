#pragma once

/* The model is y = f(x) + Z b + noise, b ~ N(0, Lam Lam'). Whitened effects Lam^{-1} b are like inducing variables
 * without residual prior variance, so posterior.h holds with (A; Lam'Z') in the place of A = L^{-1} k(Z, X). Effects of
 * the first grouping (columns Z_1) are eliminated level by level, because a row has only one level. Effects of the
 * other groupings (Z_2) are features like A: F = (A; Z_2') has m = M + q_2 rows. For weights w, rows z of Z, and the
 * columns H_l of H and entries r_l of r that belong to level l,
 *
 *     H = sum w F z' (m x q),   n_l = sum w z_1 z_1' of a level l,   r = sum w z y,
 *     T_l = I + Lam_1'n_l Lam_1 / s2 = K K',   U_l = K^{-1} Lam_1',   V_l = U_l'U_l,
 *     eliminated = sum_l H_l V_l H_l' / s2^2,   b_l = V_l (r_l - H_l'gamma) / s2,
 *     Cov(b_l | y) = V_l + V_l H_l'W W'H_l V_l / s2^2,
 *
 * where gamma is the mean of F's coefficients and W W' is their posterior covariance (both computed in R). At a row
 * with features F, F_0 = F - H_l V_l z_1 / s2 and residual prior variance E(x, x),
 *
 *     mean = F'gamma + z_1'b_l,   variance = E(x, x) + |W'F_0|^2 + |U_l z_1|^2.
 *
 * A level that is not in the data adds |Lam'z|^2 to the variance. */
#include "stats.h"

/* A grouping has p random effects for each level, so each row of the design matrix Z has p nonzero entries for it. */
struct grouping {
    int column, levels, p; /* column of X with levels 1 to `levels`; effects of a level */
    const int *design;     /* columns of X [p], -1 for an intercept */
    const double *root;    /* Lam (p x p, lower), prior N(0, Lam Lam') */
    int first;             /* first column in Z */
};
struct effects {
    /* numbers of inducing points M, groupings n and effects q; m = M + effects of all groupings but the first */
    int M, n, q, m;
    const struct grouping *grouping; /* [n]; effects of the first are eliminated */
    const struct kernel *kernel;     /* the kernel of f, which effect_sums_sink() reads */
};
/* The largest allowed number of effects of one row, over all groupings. */
enum { most_entries = 256 };

/* Computes the values of row x of the design matrix Z and their columns (-1: level not in data). Returns how many. */
int effects_row(const struct effects *e, const double *x, int ldx, int *column,
                double *value);

/* Returns the number of doubles of the sums over rows: those of stats.h, then H, n and r, the products of the design
 * matrix Z with the features, with itself (first grouping, by level) and with y. */
size_t effects_size(const struct effects *e);
struct effect_sums {
    const double *H, *n, *r;
};
struct effect_sums effects_sums(const struct effects *e, const double *sums);

/* Adds sum_l V_l'V_l to the lower triangle of S (size x size). V_l has the columns start[l], ..., start[l + 1] - 1 of V
 * (p rows). Column j of V belongs to row and column column[j] of S, and column[] ascends within each l. */
void level_products(int p, int levels, const int *start, const int *column,
                    const double *V, int size, double *S);

struct sink effect_sums_sink(const struct effects *self, double *sums);

/* This sink goes over the levels l of the first grouping and eliminates their effects. `from` has the products H_l, n_l
 * and r_l of level l's design with features, itself and y. Lam is the root of the effects' prior covariance. With T_l =
 * I + Lam'n_l Lam / s2 and V_l = Lam T_l^{-1} Lam', the sums are sum_l H_l V_l H_l' / s2^2 (m x m, lower), sum_l H_l
 * V_l r_l / s2^2 (m), sum_l r_l'V_l r_l / s2^2 and sum_l log det T_l. */
struct eliminating {
    const struct effects *effects;
    struct effect_sums from;
    double s2, *U; /* U gets U_l (p x p), U_l'U_l = V_l, of each level */
};
size_t eliminate_size(const struct effects *e);
struct sink eliminating_sink(const struct eliminating *self, double *sums);

/* This sink computes the posterior mean b (p) and covariance (p x p) of each level's effects of the first grouping.
 * `from` has sums over rows, and eliminating_sink() has computed U. gamma [m] and W W' (m x m) are the posterior mean
 * and covariance of the inducing variables and the other groupings' effects. */
struct solving {
    const struct effects *effects;
    struct effect_sums from;
    double s2;
    const double *U, *gamma, *W;
    double *b, *covariance;
};
struct sink solving_sink(const struct solving *self);

/* A pass over new rows with this sink (sink.h) computes predictions. A row's `variance` is the sum of squares of its
 * columns of `features` (m x n: inducing variables and all groupings but the first) and `own` (p x n: the first
 * grouping). Both arrays may be NULL. `unexplained` is the residual prior variance of f, plus the variance of effects
 * of levels that the data lack. */
struct effect_predicting {
    const struct inducing *z;
    struct solving of; /* without results */
    const double *b;   /* [q] of all groupings */
    double *mean, *variance, *unexplained, *features, *own;
};
struct sink effect_predicting_sink(const struct effect_predicting *self);
