/*
 * What is built for one kind of vector.  gemm.c includes this page once a kind, with
 *   NAME(verb)   its names
 *   TARGET       what tells the compiler to build for it
 *   VECTOR       some doubles
 *   COLUMNS      of a tile; its rows are two vectors
 *   EACH(f)      f(0) f(1) ... f(COLUMNS - 1)
 */

/* C = A B   A: packed, two vectors a column,  B: packed, COLUMNS a row,  C: as A, COLUMNS columns */
TARGET static void NAME(multiply)(int k, const double *A, const double *B, double *C)
{
    const VECTOR *a = (const VECTOR *)A;
    VECTOR *c = (VECTOR *)C;
#define BEGIN(j) VECTOR u##j = {0}, v##j = {0};
#define ADD(j)                                                                           \
    u##j += a0 * B[j];                                                                   \
    v##j += a1 * B[j];
#define STORE(j)                                                                         \
    c[2 * j] = u##j;                                                                     \
    c[2 * j + 1] = v##j;
    EACH(BEGIN)
    for (int p = 0; p < k; p++, a += 2, B += COLUMNS) {
        const VECTOR a0 = a[0], a1 = a[1];
        EACH(ADD)
    }
    EACH(STORE)
#undef BEGIN
#undef ADD
#undef STORE
}

/* X <- L^{-1} (X - C)   X, C: `n` times two vectors, a row of X,  L: n x n, lower, stepped */
TARGET static void NAME(solve)(int n, const double *L, ptrdiff_t row, ptrdiff_t column,
                               const double *C, double *X)
{
    const VECTOR *c = (const VECTOR *)C;
    VECTOR *x = (VECTOR *)X;
    for (int i = 0; i < n; i++, L += row) {
        VECTOR u = x[2 * i] - c[2 * i], v = x[2 * i + 1] - c[2 * i + 1];
        for (int j = 0; j < i; j++) {
            u -= x[2 * j] * L[j * column];
            v -= x[2 * j + 1] * L[j * column];
        }
        const double rate = 1.0 / L[i * column];
        x[2 * i] = u * rate;
        x[2 * i + 1] = v * rate;
    }
}

#undef NAME
#undef TARGET
#undef VECTOR
#undef COLUMNS
#undef EACH
