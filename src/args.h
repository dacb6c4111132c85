#pragma once

/* These functions, for entry points of .Call, unpack arguments, allocate memory and pack results.  An unpacker
 * raises an R error with the argument's name if the argument is wrong.  Such an error is a bug of the R code, because R
 * checks the arguments that users give.  Nothing needs to be freed after an error, because R owns all memory. */
#include <stddef.h>
#define R_NO_REMAP
#ifndef STRICT_R_HEADERS
#define STRICT_R_HEADERS
#endif
#include <R.h>
#include <Rinternals.h>
#include "lowrank.h"
#include "objective.h"
#include "pass.h"
#include "posterior.h"

/* Returns the element with this name.  Raises an error if the list has no such element. */
SEXP list_get(SEXP list, const char *name);

/* Raises an error with the requirement, a sentence about arguments, unless it holds. */
void arg_check(int holds, const char *requirement);
double arg_number(SEXP x, const char *argument);
int arg_integer(SEXP x, const char *argument);
/* Returns the integer x, which must be at least 0. */
int arg_count(SEXP x, const char *argument);
const char *arg_string(SEXP x, const char *argument);
/* Returns the doubles of the matrix x, and sets its numbers of rows and columns. */
const double *arg_matrix(SEXP x, const char *argument, int *rows, int *columns);
/* Returns the inputs that the kernel's factors read: the n x d matrix x, rotated or warped if the kernel requires it.
 * Sets n and d. Raises an error if x lacks a column that the kernel reads. */
const double *arg_inputs(const struct kernel *k, SEXP x, const char *name, int *n,
                         int *d);
/* Returns the doubles of the vector x, which must have the given length. */
const double *arg_vector(SEXP x, const char *argument, size_t length);
const double *arg_vector_or_null(SEXP x, const char *argument, size_t length);
/* Return the element with this name: a number, or the doubles of a vector that must have the given length. */
double list_number(SEXP list, const char *name);
const double *list_vector(SEXP list, const char *name, size_t length);

/* Returns a copy of the integers x, minus 1, so that they count from 0.  x must have the given length, and integers
 * between `least` and `most`.  If `least` is 0, the integer 0 stands for "none" and becomes -1. */
const int *arg_indices(SEXP x, const char *argument, size_t length, int least, int most);

/* Read a kernel and an auxiliary distribution. The results are valid until .Call returns. */
struct kernel arg_kernel(SEXP list);
struct lowrank *arg_lowrank(SEXP list, const struct kernel *kernel);

/* Returns the model of list(kernel, noise). */
const struct model *arg_model(SEXP list);
/* Returns the rows of list(x, y, scale). x must have the columns that the kernel reads; y, scale may be NULL. */
struct source *arg_rows(const struct model *model, SEXP list);
/* Works like arg_rows(), and checks that the responses y are not NULL. */
struct source *arg_data(const struct model *model, SEXP list);
/* Returns the rows of the matrix x, without responses and weights. */
struct source *arg_new_rows(const struct model *model, SEXP x);
/* Returns the inducing points of list(kernel, noise, z, jitter), without their Cholesky factor L. */
struct inducing arg_points(SEXP list);
/* Returns the posterior (posterior.h) of list(kernel, noise, z, jitter, L, C, beta). */
struct posterior *arg_posterior(SEXP list);
/* Returns the plan of a pass over N rows.  control: list(block, threads: integers; memory: bytes as a double) */
struct plan arg_plan(SEXP control, int N);
/* Returns a pass over the rows (pass.h), with inducing points z, which may be NULL. */
struct pass pass_over(const struct source *rows, const struct inducing *z, SEXP control);

/* Returns a pass over the rows of the matrix x, with inducing points z. */
struct pass pass_at(SEXP x, const struct inducing *z, SEXP control);

/* Returns the sums over rows in a result of ffi_sums(), or in several results that R has added up. */
struct stats arg_sums(SEXP list, int M, int q);

/* Returns memory that R frees when .Call returns. Doubles begin at a cache line: vectors across two lines are slow. */
double *alloc_doubles(size_t n);
int *alloc_integers(size_t n);
/* Returns an arena of memory that R frees.  If `scratch` is a vector of doubles, the arena uses it first. */
struct arena *scratch_arena(SEXP scratch);

/* Creates a named list of results. The arguments, which end with NULL, name elements that may stay R's NULL. If such an
 * element were absent, R's `$` could return one whose name begins with its name. The caller protects the list. packed()
 * unprotects and returns it, without unused places. pack_*() set an element, and return it if it is an array. */
SEXP pack(const char *optional, ...);
SEXP packed(SEXP list);
double *pack_matrix(SEXP list, const char *name, int rows, int columns);
double *pack_vector(SEXP list, const char *name, int n);
int *pack_integer_matrix(SEXP list, const char *name, int rows, int columns);
void pack_number(SEXP list, const char *name, double x);
void pack_status(SEXP list, enum status status);
/* Sets the element `status`, and the element `name` to *x, or to Inf after a failure. Returns the status. */
enum status pack_value(SEXP list, enum status status, const char *name, const double *x);
/* Creates the elements L and C (M x M) and beta [M] of a posterior. */
void pack_factors(SEXP list, int M, double **L, double **C, double **beta);
/* Sets elements G, Ay, yy, k_sum, t and log_weights to the fields of s. A trace t below 0, by rounding, becomes 0. */
void pack_sums(SEXP list, const struct stats *s);
