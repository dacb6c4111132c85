#pragma once

/*
 * Sets the number of threads of the loaded BLAS, if it is OpenBLAS or MKL.  The library's own function is looked up at
 * run time, so the package does not link to it.  Only one thread at a time may call blas_threads().
 */

/* Sets the number of threads if n >= 1.  Returns the earlier number, or 0 if it is unknown. */
int blas_threads(int n);
