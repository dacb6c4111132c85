#pragma once

/* Compilers that do not support a pragma or attribute of this file compile without it. */

/* Marks a loop that may be vectorised. */
#ifdef _OPENMP
#define PRAGMA(text) _Pragma(#text)
#else
#define PRAGMA(text)
#endif
#define SIMD     PRAGMA(omp simd)
#define SIMD_SUM PRAGMA(omp simd reduction(+ : sum))

/* Loops over i = 0, ..., n - 1, for a constant n up to 24.  The loop is unrolled, so that arrays with the index i stay
 * in registers.  clang unrolls it by itself, and gcc before version 8 does not. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define EACH(i, n) _Pragma("GCC unroll 24") for (int i = 0; i < (n); i++)
#else
#define EACH(i, n) for (int i = 0; i < (n); i++)
#endif

/* Compiles a second version of a function for processors with AVX2; the loader chooses one of the two.  Neither has
 * fused multiply-adds, so results differ only where sums are added in another order.  Under sanitizers there is one
 * version, because the loader chooses before they start. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&                   \
    defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) &&                          \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

/* Places an array at the start of a cache line, so that its vectors do not span two lines. */
#if defined(__GNUC__) && !defined(_WIN32)
#define LINED _Alignas(64)
#else
#define LINED
#endif

#if defined(__GNUC__)
#define INSIDE static inline __attribute__((always_inline))
#else
#define INSIDE static inline
#endif
