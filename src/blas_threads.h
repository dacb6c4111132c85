#ifndef PFDTC_BLAS_THREADS_H
#define PFDTC_BLAS_THREADS_H

/*
 * The number of threads of the BLAS at hand, by its own entry (OpenBLAS, MKL), which is looked
 * up among what is loaded: nothing is linked, and with any other BLAS nothing happens.  Not to
 * be called from several threads at once.
 */

/* Sets it where n >= 1; returns what it was, or 0 where there is no such entry. */
int blas_threads(int n);

#endif
