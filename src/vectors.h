#pragma once

/* These are types for vectors of doubles. Every gcc-like compiler has vectors of two. Code for wider vectors and for
 * fused multiply-adds is chosen at run time. gcc on Windows does not align the stack for vectors of four, so `four` is
 * `two` there. `bits_of_*` is a vector of integers with the same size and number of elements. */
#include <stdint.h>

#ifdef __GNUC__
#define TWO_LANES
typedef double two __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t bits_of_two __attribute__((vector_size(16), aligned(8), may_alias));
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define FOUR_LANES
#define FOR_FOUR_LANES __attribute__((target("avx2,fma")))
#ifdef _WIN32
typedef two four;
typedef bits_of_two bits_of_four;
#else
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t bits_of_four __attribute__((vector_size(32), aligned(8), may_alias));
#define EIGHT_LANES
#define FOR_EIGHT_LANES __attribute__((target("avx512f")))
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t bits_of_eight __attribute__((vector_size(64), aligned(8), may_alias));
#endif
#endif

#define LANES_OF(vector) ((int)(sizeof(vector) / sizeof(double)))
