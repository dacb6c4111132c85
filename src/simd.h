#pragma once

/* These hints are empty for compilers that do not have them. */

/* Marks a loop that may be vectorised. */
#ifdef _OPENMP
#define PRAGMA(text) _Pragma(#text)
#else
#define PRAGMA(text)
#endif
#define SIMD     PRAGMA(omp simd)
#define SIMD_SUM PRAGMA(omp simd reduction(+ : sum))

/* Compiles a function a second time for processors with AVX2, if compiler and loader can choose it
 * when it is loaded.  It has no fused multiply-adds, so elements have the same values, and sums are
 * added in another order.  (The address sanitizer is not yet there when
 * loaders choose.) */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                   \
    defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) &&                          \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

/* Inlines a function into its caller. */
#if defined(__GNUC__)
#define INSIDE static inline __attribute__((always_inline))
#else
#define INSIDE static inline
#endif
