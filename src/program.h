#pragma once

#include <stddef.h>

/*
 * Functions of f and y as programs for a stack machine, so that all threads can compute a user's likelihood.  An array
 * `programs` has two numbers that scale `strip` (responses.h), the places of five programs in the array, and the
 * programs.  A program is its length, then its steps: numbers of operations (program.c).  A value follows NUMBER.
 */

/* Returns 1 if `programs` has five programs that stay within the array and the stack. */
int programs_valid(const double *programs, size_t length);

/* Returns the value of program k. */
double program_run(const double *programs, int k, double f, double y);
