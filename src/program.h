#pragma once

#include <stddef.h>

/*
 * Functions of f and y as programs for a stack, so that a likelihood of the user's is computed in every thread. An
 * array of numbers has two numbers for its reader, the places of five programs, and the programs. A program is its
 * length and its steps: operations (program.c), where NUMBER is followed by its value.
 */

/* Returns 1 if `programs` has five programs that neither leave the array nor the stack. */
int programs_valid(const double *programs, size_t length);

/* Returns the value of program k. */
double program_run(const double *programs, int k, double f, double y);
