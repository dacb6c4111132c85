#pragma once

#include <stddef.h>

/* Programs for a stack machine compute functions of the latent f and the response y, so that all threads can use a
 * user's likelihood. An array `programs` has two shape parameters (responses.h), the places of five programs in the
 * array, and these programs: log density l, g = dl/df, W = -d2l/df2, l3 = d3l/df3, and a positive weight in place of W
 * if l is not concave. A program is its length, then codes of operations (program.c). After the code NUMBER comes a
 * number. */

/* Returns 1 if `programs` has five programs, which read only numbers of the array and do not overflow the stack. */
int programs_valid(const double *programs, size_t length);

/* Returns program k's value at f and y: for k = 0 to 4, l, g, W, l3 and the positive weight. */
double program_run(const double *programs, int k, double f, double y);
