#pragma once

#include <stddef.h>

/*
 * Programs for a stack machine compute functions of f and y, so that all threads can use a user's likelihood.  An array
 * `programs` has two numbers that scale `strip` (responses.h), the places of five programs in the array, and the
 * programs.  A program is its length, then its steps: codes of operations (program.c).  A value follows NUMBER.
 */

/* Returns 1 if `programs` has five programs that stay within the array and the stack. */
int programs_valid(const double *programs, size_t length);

/* Returns the value of program k. */
double program_run(const double *programs, int k, double f, double y);
