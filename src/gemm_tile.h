/* gemm.c includes this file once for each kind of vector (kinds.h).  These macros depend on the kind:
 *   COLUMNS      number of columns of a tile, whose columns are two vectors long
 *   DOT_COLUMNS  number of columns of a tile of dot products, which has four rows */
#if KIND == 8
#define COLUMNS     12
#define DOT_COLUMNS 6
#else
#if KIND == 4
#define COLUMNS 6
#elif KIND == 2 && defined(__aarch64__) /* the processor has 32 registers */
#define COLUMNS 12
#else
#define COLUMNS 4
#endif
#define DOT_COLUMNS 2
#endif

enum { NAME(columns) = COLUMNS, NAME(dot_columns) = DOT_COLUMNS };

#if KIND != 8 /* gemm.c has totals_8() */
/* Stores the sum of the elements of each of the four vectors v in `to`. */
TARGET INSIDE void NAME(totals)(const VECTOR *v, double *to)
{
    EACH (r, 4)
        to[r] = NAME(total)(v[r]);
}
#endif

/* Computes C = A B.  A is packed with two vectors for each of k columns, B with COLUMNS numbers for each of k rows. */
TARGET static void NAME(multiply)(int k, const double *A, const double *B, double *C)
{
    const VECTOR *a = (const VECTOR *)A;
    VECTOR *c = (VECTOR *)C, u[COLUMNS], v[COLUMNS];
    EACH (j, COLUMNS)
        u[j] = v[j] = (VECTOR){0};
    for (int p = 0; p < k; p++, a += 2, B += COLUMNS) {
        const VECTOR a0 = a[0], a1 = a[1];
        EACH (j, COLUMNS) {
            u[j] += a0 * B[j];
            v[j] += a1 * B[j];
        }
    }
    EACH (j, COLUMNS) {
        c[2 * j] = u[j];
        c[2 * j + 1] = v[j];
    }
}

/* Copies k columns of `width` numbers, times alpha, to adjacent columns of `to`. In `from`, they are `column` apart. */
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

/* Overwrites X by L^{-1} (X - C), L lower triangular with L_ij at L[i row + j column]. X, C: n rows of two vectors */
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

/* Computes the sums of squares of the columns of X, whose n rows are two vectors each. */
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

/* Computes the dot products a_i'b_j of 4 vectors a and DOT_COLUMNS vectors b. k is a multiple of LANES_OF(VECTOR). */
TARGET static void NAME(dots)(int k, const double *const *a, const double *const *b,
                              double *out)
{
    VECTOR sums[4 * DOT_COLUMNS], x[4];
    EACH (i, 4 * DOT_COLUMNS)
        sums[i] = (VECTOR){0};
    for (int p = 0; p < k; p += LANES_OF(VECTOR)) {
        EACH (r, 4)
            x[r] = *(const VECTOR *)(a[r] + p);
        EACH (j, DOT_COLUMNS) {
            const VECTOR y = *(const VECTOR *)(b[j] + p);
            EACH (r, 4)
                sums[4 * j + r] += x[r] * y;
        }
    }
    EACH (j, DOT_COLUMNS)
        NAME(totals)(sums + 4 * j, out + 4 * j);
}

#undef COLUMNS
#undef DOT_COLUMNS
