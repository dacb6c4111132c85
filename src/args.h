#ifndef PFDTC_ARGS_H
#define PFDTC_ARGS_H

/*
 * What every door needs: unpackers that return something safe or raise, naming the argument;
 * and scratch.  A raise here is a broken promise of the R code, which has checked what users
 * gave; nothing needs undoing, since all memory is R's.
 */
#include <stddef.h>
#define R_NO_REMAP
#ifndef STRICT_R_HEADERS
#define STRICT_R_HEADERS
#endif
#include <R.h>
#include <Rinternals.h>
#include "lowrank.h"
#include "posterior.h"

/* element of a named list; raises where there is none */
SEXP list_get(SEXP list, const char *name);

double arg_number(SEXP x, const char *argument);
int arg_integer(SEXP x, const char *argument);
/* the same, not negative */
int arg_count(SEXP x, const char *argument);
/* doubles of a matrix, with its dimensions */
const double *arg_matrix(SEXP x, const char *argument, int *rows, int *columns);
/* the same of rows that the kernel is evaluated at: they have the columns that it reads */
const double *arg_inputs(const struct kernel *k, SEXP x, const char *argument, int *rows,
                         int *columns);
/* the same as one block, without responses */
struct block arg_block(const struct kernel *k, SEXP x, const char *argument,
                       int *columns);
/* doubles of a vector of that length */
const double *arg_vector(SEXP x, const char *argument, size_t length);
/* the same, or NULL for R's NULL */
const double *arg_vector_or_null(SEXP x, const char *argument, size_t length);

struct kernel arg_kernel(SEXP list);
struct lowrank arg_lowrank(SEXP list, const struct kernel *kernel);
/* points with L, C and s2, without beta */
struct posterior arg_posterior(const struct kernel *k, SEXP z, SEXP L, SEXP C, SEXP s2);

/* One piece of memory cut up twice: with base == NULL only the size is counted. */
struct arena {
    double *base;
    size_t used;
};
double *arena_take(struct arena *arena, size_t n);

/* R vectors for results, protected by the caller */
SEXP new_list(int n, const char *const *names);

#endif
