#pragma once

/* Declares the entry points that R calls by .Call ("doors" in CONTRIBUTING.md). Equal names of arguments mean the same:
 *   model      list(kernel, noise)
 *   points     a model with inducing points z and their jitter
 *   posterior  points with L (L L' = k(Z, Z)), beta (mean of L^{-1} f(Z)), C (C C' is proportional to the precision of
 *              L^{-1} f(Z)) and, if it is read, G = A A' with A = L^{-1} k(Z, X)
 *   rows       list(x, y, scale): scale has the square roots of the weights or is NULL; y is NULL if it is not read
 *   control    list(block, threads, memory), see arg_plan()
 * The result of a computation that can fail has the element `status`, an enum status. An entry point writes to no
 * argument but `scratch`. Numbers of rows and columns count from 1. */
#include "args.h"
#include "likelihood.h"

/* Reads the arguments of a Vecchia likelihood, in which the log density of each row in `targets` has the weight 1. */
struct likelihood arg_likelihood(SEXP model, SEXP rows, SEXP weights, SEXP noise_basis,
                                 SEXP targets, SEXP neighbours, SEXP slopes,
                                 SEXP control);
/* Reads the largest numbers of neighbours: `few` for a row near other rows, `most` for a row far from all of them. s
 * has both numbers, or one for both. Each is at most n. */
void arg_neighbours(SEXP s, int n, int *few, int *most);
void pack_vecchia(SEXP result, const struct vecchia *whole);

/* door(name, n) stands for the entry point ffi_name() with n arguments. Comments name the source files of doors. */
/* clang-format off */
#define DOORS(door)                                                                     \
    /* ffi_kernel.c: */ door(kernel_matrix, 4) door(kernel_diagonal, 2) door(kernel_slopes, 4) \
        door(slope_variance, 3) door(select, 4) door(select_guided, 4)                  \
        door(row_features, 2) door(blas_threads, 1) door(linalg_own, 1) door(status, 1) \
    /* ffi_objective.c: */ door(evaluate, 6) door(sums, 4) door(objective, 4)            \
        door(gradient, 6)                                                               \
    /* ffi_posterior.c: */ door(posterior_of_sums, 2) door(posterior, 6) door(predict, 3) \
        door(covariance, 4)                                                             \
    /* ffi_divergence.c: */ door(pf_constant, 4) door(pf_divergence, 4) door(lowrank_rows, 4) \
    /* ffi_likelihood.c: */ door(vecchia, 9) door(neighbours, 7) door(row_forms, 2)      \
    /* ffi_effects.c: */ door(effect_sums, 5) door(eliminate, 6) door(effect_solve, 6)   \
        door(effect_predict, 6) door(integrated, 9) door(near_effects, 5)               \
        door(level_products, 4) door(factor, 3)                                         \
    /* ffi_laplace.c: */ door(laplace, 7) door(softmax, 7) door(softmax_at, 6) door(forms, 4) \
        door(paths, 5) door(sites, 2)                                                   \
    /* ffi_near.c: */ door(near, 7) door(near_predict, 7) door(near_covariance, 5)       \
    /* ffi_certify.c: */ door(norms, 6) door(cross, 4) door(certify, 6) door(kriging, 9) \
    /* ffi_solve.c: */ door(decorrelate, 5) door(kernel_matvecs, 6)                      \
        door(kernel_cross_matvec, 5) door(response, 4)                                  \
    /* ffi_exact.c: */ door(exact, 5) door(exact_precision, 2)
#define SEXP_1 SEXP
#define SEXP_2 SEXP_1, SEXP
#define SEXP_3 SEXP_2, SEXP
#define SEXP_4 SEXP_3, SEXP
#define SEXP_5 SEXP_4, SEXP
#define SEXP_6 SEXP_5, SEXP
#define SEXP_7 SEXP_6, SEXP
#define SEXP_8 SEXP_7, SEXP
#define SEXP_9 SEXP_8, SEXP
#define DECLARE(name, n) SEXP ffi_##name(SEXP_##n);
DOORS(DECLARE)
/* clang-format on */
