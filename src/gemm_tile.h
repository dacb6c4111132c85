/*
 * gemm.c includes this file once for each kind of vector (kinds.h).  These macros depend on the kind:
 *   COLUMNS      number of columns of a tile, whose columns are two vectors long
 *   EACH(f)      f(0) f(1) ... f(COLUMNS - 1)
 *   DOT_COLUMNS  number of columns of a tile of dot products, which has four rows
 *   EACH_DOT(f)  f(0) ... f(DOT_COLUMNS - 1)
 *   SUMS(r, s, t, u, to)  to [4] = the sums of the elements of r, of s, of t and of u
 */
#if KIND == 8
#define COLUMNS     12
#define EACH        EACH_12
#define DOT_COLUMNS 6
#define EACH_DOT    EACH_6
#define SUMS(r, s, t, u, to)                                                             \
    sums_of_eights((__m512d)(r), (__m512d)(s), (__m512d)(t), (__m512d)(u), to)
#else
#if KIND == 4
#define COLUMNS 6
#define EACH    EACH_6
#elif KIND == 2 && defined(__aarch64__) /* the processor has 32 registers */
#define COLUMNS 12
#define EACH    EACH_12
#else
#define COLUMNS 4
#define EACH    EACH_4
#endif
#define DOT_COLUMNS 2
#define EACH_DOT    EACH_2
#define SUMS        SUMS_OF
#endif

enum { NAME(columns) = COLUMNS, NAME(dot_columns) = DOT_COLUMNS };

/* Computes C = A B.  A is packed with two vectors for each of k columns, B with COLUMNS numbers for each of k rows. */
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

/* Copies alpha times k columns of `width` numbers, which begin `column` apart, to adjacent columns. */
TARGET static void NAME(pack)(int width, int k, double alpha, const double *from,
                              ptrdiff_t column, double *to)
{
    const int lanes = LANES_OF(VECTOR);
    for (int e = 0; e < k; e++, from += column, to += width)
        for (int r = 0; r < width;
             r += lanes) { /* the last vector may overlap the one before */
            const int at = r + lanes <= width ? r : width - lanes;
            *(VECTOR *)(to + at) = alpha * *(const VECTOR *)(from + at);
        }
}

/* Computes X <- L^{-1} (X - C).  X and C have n rows of two vectors.  L is lower, with L_ij at L[i * row + j *
 * column]. */
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

/* Computes the column sums of squares of X, whose n rows are two vectors each. */
TARGET static void NAME(squares)(int n, const double *X, double *out)
{
    const VECTOR *x = (const VECTOR *)X;
    VECTOR u = {0}, v = {0};
    for (int i = 0; i < n; i++, x += 2) {
        u += x[0] * x[0];
        v += x[1] * x[1];
    }
    ((VECTOR *)out)[0] = u;
    ((VECTOR *)out)[1] = v;
}

/* Computes the dot products a_i'b_j of 4 vectors a and DOT_COLUMNS vectors b.  Their length k is a multiple of the
 * lanes. */
TARGET static void NAME(dots)(int k, const double *const *a, const double *const *b,
                              double *out)
{
    const double *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
#define BEGIN(j)                                                                         \
    const double *b##j = b[j];                                                           \
    VECTOR r##j = {0}, s##j = {0}, t##j = {0}, u##j = {0};
#define ADD(j)                                                                           \
    {                                                                                    \
        const VECTOR y = *(const VECTOR *)(b##j + p);                                    \
        r##j += x0 * y;                                                                  \
        s##j += x1 * y;                                                                  \
        t##j += x2 * y;                                                                  \
        u##j += x3 * y;                                                                  \
    }
#define STORE(j) SUMS(r##j, s##j, t##j, u##j, out + 4 * j);
    EACH_DOT(BEGIN)
    for (int p = 0; p < k; p += LANES_OF(VECTOR)) {
        const VECTOR x0 = *(const VECTOR *)(a0 + p), x1 = *(const VECTOR *)(a1 + p),
                     x2 = *(const VECTOR *)(a2 + p), x3 = *(const VECTOR *)(a3 + p);
        EACH_DOT(ADD)
    }
    EACH_DOT(STORE)
#undef BEGIN
#undef ADD
#undef STORE
}

#undef COLUMNS
#undef EACH
#undef DOT_COLUMNS
#undef EACH_DOT
#undef SUMS
