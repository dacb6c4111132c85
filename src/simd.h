#ifndef PFDTC_SIMD_H
#define PFDTC_SIMD_H

/* Loops that may be vectorised, said to compilers that listen. */
#ifdef _OPENMP
#define PRAGMA(text) _Pragma(#text)
#else
#define PRAGMA(text)
#endif
#define SIMD     PRAGMA(omp simd)
#define SIMD_SUM PRAGMA(omp simd reduction(+ : sum))

#endif
