/* Tests of sums over blocks of rows, and over pairs of blocks. */
#include <math.h>
#include "ctest.h"
#include "linalg.h"
#include "gram.h"

static const struct shape shapes[] = {/* M, N, columns, d, n_u, q */
                                      {1, 1, 1, 1, 1, 1},
                                      {4, 11, 3, 2, 5, 3},
                                      {5, 1, 2, 1, 2, 4},
                                      {2, 9, 1, 1, 1, 2}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* Compares G, A y, A W_x, y'y, sum k(x,x) w and t with their definitions. */
static void check_sums(const struct problem *p, const struct inducing *z, int q,
                       const struct stats *s)
{
    const int M = p->shape.M;
    const struct dense f = dense_of(p);
    const struct matrix L = matrix_of(M, M, z->L),
                        A = times(inverse(L, NULL), transposed(f.Kxm));
    CHECK_ARRAY((size_t)M * M, s->G, times(A, transposed(A)).x, 1e-12);
    CHECK_ARRAY((size_t)M, s->Ay, times(A, f.y).x, 1e-12);
    CHECK_ARRAY((size_t)M * q, s->AW, times(A, f.Wx).x, 1e-12);
    CHECK_NEAR(s->yy, at(times(transposed(f.y), f.y), 0, 0), 1e-13);
    CHECK_NEAR(s->k_sum, trace_of(f.K), 1e-13);
    CHECK_NEAR(s->t, trace_of(plus(f.K, -1.0, f.Q)), 1e-12);
}

static void stats_of(struct problem *p)
{
    const struct lowrank aux = problem_aux(p);
    const int cuts[] = {p->shape.N, 1, 2, 4};
    for (int i = 0; i < 4; i++)
        for (int with_aux = 0; with_aux < 2; with_aux++) {
            struct pieces pass;
            pieces_make(p, with_aux ? &aux : NULL, cuts[i], &pass);
            CHECK(pass.status == STATUS_OK);
            check_sums(p, &pass.z, with_aux ? aux.q : 0, &pass.stats);
        }
}

/* Checks that sums of several blocks add up, and that stats_finish() notices a sum that is not finite. */
static void stats_by_hand(void)
{
    const int M = 3, n = 5, q = 2;
    const struct covariance c = covariance_new("se", 1, 1);
    const struct block b = {
        n, array_random(n, -1, 1), n, array_random(n, -1, 1), array_random(n, 0.5, 1), 0};
    const double *A = array_random((size_t)M * n, -1, 1),
                 *Wt = array_random((size_t)q * n, -1, 1);
    const size_t size = stats_size(M, q);
    double *once = array_zero(size), *twice = array_zero(size), *ys = array(n),
           logs = 0.0;
    struct stats s;
    block_response(&b, ys);
    for (int i = 0; i < n; i++) {
        CHECK(ys[i] == b.scale[i] * b.y[i]);
        logs += 4.0 * log(b.scale[i]);
    }
    stats_add(&c.kernel, M, q, &b, A, Wt, array(2 * (size_t)n - PLANTED), once);
    stats_add(&c.kernel, M, q, &b, A, Wt, array(2 * (size_t)n), twice);
    stats_add(&c.kernel, M, q, &b, A, Wt, array(2 * (size_t)n), twice);
    add_scaled(size, 1.0, once, once); /* twice the sums of one block */
    CHECK_ARRAY(size, once, twice, 1e-14);
    CHECK(stats_finish(M, q, once, &s) == STATUS_OK);
    CHECK(s.n == 2 * n);
    CHECK_NEAR(s.log_weights, logs, 1e-14);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++)
            CHECK(s.G[i * M + j] == s.G[j * M + i]);
    once[M * M + M + M * q - 1] = NAN;
    CHECK(stats_finish(M, q, once, &s) == STATUS_NOT_FINITE);
    once[M * M + M + M * q - 1] = 0.0;
    once[M * M + M + M * q] = INFINITY; /* y'y */
    CHECK(stats_finish(M, q, once, &s) == STATUS_NOT_FINITE);
}

/* Checks that the arrays of an adjoint are in its memory, do not overlap and are 0. */
static void adjoints(int M, int q, int with_E)
{
    const size_t size = adjoint_size(M, q, with_E), MM = (size_t)M * M,
                 Mq = (size_t)M * q;
    double *memory = array(size), sum = 0.0;
    struct adjoint a;
    adjoint_init(M, q, with_E, memory, &a);
    for (size_t i = 0; i < size; i++)
        sum += fabs(memory[i]);
    CHECK(sum == 0.0);
    CHECK(a.M == M && a.q == q);
    CHECK((a.E != NULL) == (with_E != 0));
    add_scaled(MM, 1.0, array_random(MM, 1.0, 1.0), a.H);
    add_scaled(MM, 1.0, array_random(MM, 1.0, 1.0), a.Kmm_bar);
    add_scaled(Mq, 1.0, array_random(Mq, 1.0, 1.0), a.F);
    add_scaled(Mq, 1.0, array_random(Mq, 1.0, 1.0), a.Wm_bar);
    add_scaled((size_t)M, 1.0, array_random((size_t)M, 1.0, 1.0), a.f);
    add_scaled((size_t)M, 1.0, array_random((size_t)M, 1.0, 1.0), a.kzz_bar);
    add_scaled((size_t)M, 1.0, array_random((size_t)M, 1.0, 1.0), a.beta);
    *a.k_bar += 1.0;
    if (with_E)
        add_scaled(MM, 1.0, array_random(MM, 1.0, 1.0), a.E);
    for (size_t i = 0; i < size; i++)
        CHECK(memory[i] == 1.0);
}

void group_stats(void)
{
    stats_by_hand();
    for_problems(shapes, N_SHAPES, 0, stats_of);
    for (int M = 1; M < 4; M++)
        for (int q = 0; q < 3; q++)
            for (int with_E = 0; with_E < 2; with_E++)
                adjoints(M, q, with_E);
}

/* ---- pairs ------------------------------------------------------------------------- */

/* Compares the blocks E_cb = K_cb - A_c'A_b with those of E = K - Q. */
static void unexplained(const struct problem *p, int block)
{
    const int N = p->shape.N, M = p->shape.M;
    const struct dense f = dense_of(p);
    const struct matrix E = plus(f.K, -1.0, f.Q);
    struct pieces pass;
    int from_b = 0;
    pieces_make(p, NULL, block, &pass);
    for (int i = 0; i < pass.n_pieces; i++) {
        const struct piece *b = pass.piece + i;
        int from_c = 0;
        for (int j = 0; j < pass.n_pieces; j++) {
            const struct piece *c = pass.piece + j;
            const int n_b = b->block.n, n_c = c->block.n;
            double *E_cb = array((size_t)n_c * n_b);
            pairs_unexplained(&p->covariance.kernel, &b->block, &c->block, M, b->A, c->A,
                              E_cb);
            for (int h = 0; h < n_b; h++)
                CHECK_ARRAY((size_t)n_c, E_cb + (size_t)h * n_c,
                            E.x + (size_t)(from_b + h) * N + from_c, 1e-12);
            from_c += n_c;
        }
        from_b += b->block.n;
    }
}

/* Checks that pairs_add_both(), for the first n_b rows and the others, adds K V (two vectors) to what is there. */
static void pairs_of_two(const struct problem *p, int n_b)
{
    const int N = p->shape.N, n_c = N - n_b, m = 2;
    const struct kernel *k = &p->covariance.kernel;
    const struct block b = block_rows(p, 0, n_b), c = block_rows(p, n_b, n_c);
    const double *V = array_random((size_t)N * m, -1, 1),
                 *K = naive_kernel(&p->covariance, N, p->X, N, N, p->X, N).x;
    double *out = array_copy((size_t)N * m, V), *want = array_copy((size_t)N * m, V);
    pairs_add_both(k, &b, &c, m, N, V, V + n_b, array(pairs_both_size(n_b, n_c)), out,
                   out + n_b);
    pairs_add_both(k, &b, &b, m, N, V, V, array(pairs_both_size(n_b, n_b)), out, NULL);
    pairs_add_both(k, &c, &c, m, N, V + n_b, V + n_b, array(pairs_both_size(n_c, n_c)),
                   out + n_b, NULL);
    for (int v = 0; v < m; v++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                want[v * N + i] += K[(size_t)j * N + i] * V[v * N + j];
    CHECK_ARRAY((size_t)N * m, out, want, 1e-13);
}

/* Checks P K and sum K^2 from pairs of blocks of `block` rows, and an empty block. */
static void pairs(const struct problem *p, int block)
{
    const int N = p->shape.N, m = p->shape.M, n_blocks = (N + block - 1) / block + 1;
    const struct kernel *k = &p->covariance.kernel;
    const struct dense f = dense_of(p);
    const struct matrix P = {m, N, array_random((size_t)m * N, -1.0, 1.0)},
                        PK = times(P, f.K);
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < n_blocks; i++) {
        const int first = i * block < N ? i * block : N,
                  n = N - first < block ? N - first : block;
        const struct block b = block_rows(p, first, n);
        double *out = array_zero((size_t)m * n);
        for (int j = 0; j < n_blocks; j++) {
            const int from = j * block < N ? j * block : N,
                      n_c = N - from < block ? N - from : block;
            const struct block c = block_rows(p, from, n_c);
            const double *P_c = array_copy((size_t)m * n_c, P.x + (size_t)m * from);
            double *K_cb = array((size_t)n * n_c);
            pairs_add(k, &b, &c, m, P_c, K_cb, out);
            squares += sum_squares((size_t)n * n_c, K_cb);
        }
        CHECK_ARRAY((size_t)m * n, out, PK.x + (size_t)m * first, 1e-13);
    }
    if (N > 1) /* two blocks, then a block with itself */
        pairs_of_two(p, N / 2);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum += at(f.K, i, j) * at(f.K, i, j);
    CHECK_NEAR(squares, sum, 1e-13);
}

static void all_pairs(struct problem *p)
{
    pairs(p, p->shape.N);
    pairs(p, 1);
    pairs(p, 4);
    unexplained(p, p->shape.N);
    unexplained(p, 3);
}

void group_pairs(void)
{
    for_problems(shapes, N_SHAPES, 0, all_pairs);
}
