#include "block.h"
#include "gemm.h"
#include "simd.h"
#include "vectors.h"

#ifdef EIGHT_LANES
#include <immintrin.h>
/* Computes to [4], the sums of the elements of four vectors: adds adjacent elements, then quarters, then halves. */
FOR_EIGHT_LANES INSIDE void totals_8(const eight *v, double *to)
{
    const __m512d r = (__m512d)v[0], s = (__m512d)v[1], t = (__m512d)v[2],
                  u = (__m512d)v[3];
    const __m512d rs = _mm512_unpacklo_pd(r, s) + _mm512_unpackhi_pd(r, s),
                  tu = _mm512_unpacklo_pd(t, u) + _mm512_unpackhi_pd(t, u);
    const __m512d quarters =
        _mm512_shuffle_f64x2(rs, tu, 0x88) + _mm512_shuffle_f64x2(rs, tu, 0xDD);
    const __m512d sums = quarters + _mm512_shuffle_f64x2(quarters, quarters, 0xB1);
    _mm256_storeu_pd(to, _mm512_castpd512_pd256(_mm512_shuffle_f64x2(sums, sums, 0x08)));
}
#endif

#define PAGE "gemm_tile.h"
#include "kinds.h"

struct shape {
    /* doubles in a vector; rows and columns of a tile; columns of a tile of dot products, which has 4 rows */
    int lanes, rows, columns, dot_columns;
    void (*pack)(int width, int k, double alpha, const double *from, ptrdiff_t column,
                 double *to);
    void (*multiply)(int k, const double *A, const double *B, double *C);
    void (*solve)(int n, const double *L, ptrdiff_t row, ptrdiff_t column,
                  const double *C, double *X);
    void (*squares)(int n, const double *X, double *out);
    void (*dots)(int k, const double *const *a, const double *const *b, double *out);
};

#define SHAPE(kind, vector)                                                              \
    {                                                                                    \
        LANES_OF(vector), 2 * LANES_OF(vector), columns_##kind, dot_columns_##kind,      \
            pack_##kind, multiply_##kind, solve_##kind, squares_##kind, dots_##kind      \
    }
static const struct shape shapes[N_KINDS] = KINDS(SHAPE);

/* ---- packing parts of A and B for the cache --------------------------------------------- */

/* A is packed in parts of WIDE x DEEP, B of DEEP x WIDE. The numbers of rows and columns of every tile divide WIDE. */
#define DEEP      128
#define SOLVED    208 /* rows of a triangular system that are solved at a time */
#define WIDE      144
#define MOST_ROWS 16
#define MOST_TILE (MOST_ROWS * 12)
#define MOST_DOTS 6

/* Splits n into the fewest parts of at most `most`. Returns the size of all parts but the last, a multiple of `of`. */
static int part(int n, int most, int of)
{
    const int parts = (n + most - 1) / most, each = (n + parts - 1) / parts;
    return (each + of - 1) / of * of;
}

/* Copies n vectors of k entries, times alpha. Arguments give the distances between vectors and between entries. */
INSIDE void move(int n, int k, double alpha, const double *from, ptrdiff_t from_vector,
                 ptrdiff_t from_entry, double *to, ptrdiff_t to_vector,
                 ptrdiff_t to_entry)
{
    int r = 0;
    for (; r + 4 <= n; r += 4, from += 4 * from_vector, to += 4 * to_vector)
        for (int e = 0; e < k; e++)
            EACH (q, 4)
                to[q * to_vector + e * to_entry] =
                    alpha * from[q * from_vector + e * from_entry];
    for (; r < n; r++, from += from_vector, to += to_vector)
        for (int e = 0; e < k; e++)
            to[e * to_entry] = alpha * from[e * from_entry];
}

/* Packs entries p ... p + k - 1 of the rows i ... i + n - 1 of A, times alpha, in strips of `width` rows. A strip has
 * the first entries of its rows side by side, then the second entries, ... Missing rows of the last strip are 0. */
static void pack(const struct shape *shape, struct strided A, int i, int n, int p, int k,
                 int width, double alpha, double *to)
{
    for (; n > 0; i += width, n -= width, to += (size_t)width * k) {
        const int have = min_int(width, n);
        if (have < width)
            for (size_t e = 0; e < (size_t)width * k; e++)
                to[e] = 0.0;
        const double *from = A.x + i * A.row + p * A.column;
        if (A.row == 1 && have == width)
            shape->pack(width, k, alpha, from, A.column, to);
        else
            move(have, k, alpha, from, A.row, A.column, to, 1, width);
    }
}

/* ---- C += alpha A B --------------------------------------------------------------------- */

struct target {
    double *C;
    ptrdiff_t row, column;
    int lower; /* 1 if only entries with row >= column are computed */
};

/* Adds the first `rows` x `columns` numbers of a tile to C from (i, j) on. Columns of the tile are `stride` apart. */
CLONES static void add_tile(const struct target *to, int stride,
                            const double *restrict tile, int i, int j, int rows,
                            int columns)
{
    for (int c = 0; c < columns; c++, tile += stride) {
        double *restrict C = to->C + (j + c) * to->column + i * to->row;
        const int from = to->lower && j + c > i ? j + c - i : 0;
        if (to->row == 1) {
            SIMD
            for (int r = from; r < rows; r++)
                C[r] += tile[r];
        } else if (to->row == -1) { /* a system that is solved backwards */
            SIMD
            for (int r = from; r < rows; r++)
                C[-r] += tile[r];
        } else
            for (int r = from; r < rows; r++)
                C[r * to->row] += tile[r];
    }
}

/* Multiplies the packed parts A (m x k) and B (k x n), and adds the product to C from (i, j) on. */
static void add_tiles(const struct shape *s, const struct target *to, int i, int j, int m,
                      int n, int k, const double *A, const double *B)
{
    LINED double tile[MOST_TILE];
    for (int c = 0; c < n; c += s->columns)
        for (int r = 0; r < m; r += s->rows) {
            const int rows = min_int(s->rows, m - r),
                      columns = min_int(s->columns, n - c);
            if (to->lower && i + r + rows <= j + c)
                continue;
            s->multiply(k, A + (size_t)r * k, B + (size_t)c * k, tile);
            add_tile(to, s->rows, tile, i + r, j + c, rows, columns);
        }
}

void gemm_add(int lanes, int m, int n, int k, double alpha, struct strided A,
              struct strided B, double *C, ptrdiff_t row, ptrdiff_t column, int lower)
{
    const struct shape s = shapes[widest_kind(lanes)];
    const struct strided Bt = {B.x, B.column, B.row};
    const struct target to = {C, row, column, lower};
    LINED double a[WIDE * DEEP], b[WIDE * DEEP];
    if (m == 0 || n == 0 || k == 0)
        return;
    const int deep = part(k, DEEP, 1), high = part(m, WIDE, s.rows),
              wide = part(n, WIDE, s.columns);
    for (int j = 0; j < n; j += wide)
        for (int p = 0; p < k; p += deep) {
            const int width = min_int(wide, n - j), depth = min_int(deep, k - p);
            pack(&s, Bt, j, width, p, depth, s.columns, alpha, b);
            for (int i = 0; i < m; i += high) {
                const int height = min_int(high, m - i);
                if (lower && i + height <= j)
                    continue;
                pack(&s, A, i, height, p, depth, s.rows, 1.0, a);
                add_tiles(&s, &to, i, j, height, width, depth, a, b);
            }
        }
}

/* ---- C += alpha A'A, when the columns of A are not adjacent -------------------------------- */

/* Adds alpha a_r'a_c, for n vectors a of length m, to each entry (r, c) with r >= c of the tile of C from (i, j) on. */
static void add_dots(const struct shape *s, int m, int n, int i, int j, double alpha,
                     const double *const *a, double *C)
{
    const int whole = m - m % s->lanes;
    const double *x[4], *y[MOST_DOTS];
    double tile[4 * MOST_DOTS];
    for (int r = 0; r < 4; r++)
        x[r] = a[min_int(i + r, n - 1)];
    for (int c = 0; c < s->dot_columns; c++)
        y[c] = a[min_int(j + c, n - 1)];
    s->dots(whole, x, y, tile);
    for (int c = 0; c < s->dot_columns && j + c < n; c++)
        for (int r = i < j + c ? j + c - i : 0; r < 4 && i + r < n; r++) {
            double sum = tile[4 * c + r];
            for (int p = whole; p < m; p++)
                sum += x[r][p] * y[c][p];
            C[(ptrdiff_t)(j + c) * n + i + r] += alpha * sum;
        }
}

void gemm_add_AtA(int lanes, int m, int n, double alpha, const double *const *a,
                  double *C)
{
    const struct shape s = shapes[widest_kind(lanes)];
    for (int j = 0; j < n; j += s.dot_columns)
        for (int i = j; i < n; i += 4)
            add_dots(&s, m, n, i, j, alpha, a, C);
}

/* ---- B <- L^{-1} B ---------------------------------------------------------------------- */

/* solve_block() packs at most this number of doubles of L, for tiles of up to 12 columns. */
#define TRIANGLE (SOLVED * (SOLVED + 12) / 2)

/* Solves L X = B for at most SOLVED rows (m). Columns of B are packed as rows of a tile, at most s->rows at a time, and
 * rows of L as columns of a tile. Stores X in `to` or, if `squares` is not NULL, squared norms of X's columns there. */
static void solve_block(const struct shape *s, int m, int n, struct strided L,
                        struct strided B, double *to, double *squares)
{
    LINED double l[TRIANGLE], x[SOLVED * MOST_ROWS], sum[MOST_TILE];
    const struct strided Bt = {B.x, B.column, B.row};
    for (int i = 0, used = 0; i < m;
         i += s->columns) { /* packs L to the left of its diagonal tiles */
        pack(s, L, i, min_int(s->columns, m - i), 0, i, s->columns, 1.0, l + used);
        used += i * s->columns;
    }
    for (int j = 0; j < n; j += s->rows) {
        const int columns = min_int(s->rows, n - j);
        const double *li = l;
        pack(s, Bt, j, columns, 0, m, s->rows, 1.0, x);
        for (int i = 0; i < m; i += s->columns) {
            s->multiply(i, x, li, sum);
            s->solve(min_int(s->columns, m - i), L.x + i * (L.row + L.column), L.row,
                     L.column, sum, x + i * s->rows);
            li += i * s->columns;
        }
        if (squares == NULL) {
            move(columns, m, 1.0, x, 1, s->rows, to + j * B.column, B.column, B.row);
            continue;
        }
        s->squares(m, x, sum);
        for (int c = 0; c < columns; c++)
            squares[j + c] = sum[c];
    }
}

void gemm_solve(int lanes, int m, int n, struct strided L, double *B, ptrdiff_t row,
                ptrdiff_t column)
{
    const struct shape s = shapes[widest_kind(lanes)];
    if (m == 0 || n == 0)
        return;
    const int deep = part(m, SOLVED, 1);
    for (int i = 0; i < m; i += deep) { /* B_i <- L_ii^{-1} (B_i - L_i. B) */
        const int rows = min_int(deep, m - i);
        const struct strided left = {L.x + i * L.row, L.row, L.column},
                             corner = {left.x + i * L.column, L.row, L.column},
                             solved = {B, row, column};
        gemm_add(lanes, rows, n, i, -1.0, left, solved, B + i * row, row, column, 0);
        solve_block(&s, rows, n, corner, (struct strided){B + i * row, row, column},
                    B + i * row, NULL);
    }
}

int gemm_solve_squares(int lanes, int m, int n, struct strided L, struct strided B,
                       double *squares)
{
    const struct shape s = shapes[widest_kind(lanes)];
    if (m > SOLVED)
        return 0;
    solve_block(&s, m, n, L, B, NULL, squares);
    return 1;
}
