#pragma once

/*
 * The number of threads of the loaded BLAS (OpenBLAS, MKL), by its own function, which is looked up
 * at run time.  Nothing is linked, and with another BLAS nothing happens.  Do not call it from
 * several threads at once.
 */

/* Sets the number if n >= 1; returns the number before, or 0 if it is not known. */
int blas_threads(int n);
