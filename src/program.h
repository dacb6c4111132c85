#pragma once

#include <stddef.h>

/* Programs for a stack machine compute functions of the latent f and the response y, so that all threads can use a
 * user's likelihood. An array `programs` has two shape parameters (responses.h), the places of five programs in the
 * array, and these programs: log density l, g = dl/df, W = -d2l/df2, l3 = d3l/df3, and the weight of a majorant. A
 * program is its length, then its steps: codes of operations (program.c). After the code NUMBER comes a number. */

/* Returns 1 if `programs` has five programs that stay within the array and the stack. */
int programs_valid(const double *programs, size_t length);

/* Returns the value of program k, 0 to 4, at f and y. */
double program_run(const double *programs, int k, double f, double y);
