#pragma once

/* If n >= 1, sets the number of threads of the loaded BLAS, if it is OpenBLAS or MKL, by a function that is looked up
 * at run time. Returns the earlier number, or 0 if it is unknown. Only one thread at a time may call blas_threads(). */
int blas_threads(int n);
