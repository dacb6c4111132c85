#pragma once

/*
 * Sets the number of threads of the loaded BLAS (OpenBLAS or MKL).  The function that does it is looked up at run
 * time, so nothing is linked.  Other libraries are left alone.  Several threads must not call this at once.
 */

/* Sets the number of threads if n >= 1.  Returns the earlier number, or 0 if it is unknown. */
int blas_threads(int n);
