#pragma once

#include <stddef.h>

/* Programs for a stack machine compute functions of the latent f and the response y, so that all threads can use a
 * user's likelihood. An array `programs` has two shape parameters (responses.h), the places of five programs in the
 * array, and the programs. A program is its length, then its steps, which are codes of operations (program.c). The code
 * NUMBER is followed by the number that it pushes. */

/* Returns 1 if `programs` has five programs that stay within the array and the stack. */
int programs_valid(const double *programs, size_t length);

/* Returns the value of program k, 0 to 4, at f and y. */
double program_run(const double *programs, int k, double f, double y);
