#include <math.h>
#include "certify.h"
#include "linalg.h"
#include "norms.h"
#include "gram.h"

/* A group b has the n_b rows from `start` on. One of its pieces has the n rows from start + i on, n <= g->inner. */
struct piece {
    int start, n_b, i, n;
};

struct pieces {
    const struct row_groups *g;
    int group_rows, each, n; /* rows of a group, pieces of a group, all pieces */
};

static struct pieces pieces_of(const struct row_groups *g, int group_rows)
{
    const int N = g->rows.N, each = (group_rows - 1) / g->inner + 1,
              last = N - (N - 1) / group_rows * group_rows;
    return (struct pieces){g, group_rows, each,
                           (N - 1) / group_rows * each + (last - 1) / g->inner + 1};
}

static struct piece piece_of(const struct pieces *all, int b)
{
    const struct row_groups *g = all->g;
    struct piece p;
    p.start = b / all->each * all->group_rows;
    p.n_b = min_int(g->rows.N - p.start, all->group_rows);
    p.i = b % all->each * g->inner;
    p.n = min_int(p.n_b - p.i, g->inner);
    return p;
}

static size_t rows_size(const struct row_groups *g)
{
    return source_size(&g->rows, g->inner);
}

/* For v = (y - posterior mean) / noise variance, computes a piece's part of v_b'K_bb v_b for a group b of rows: the sum
 * over pairs of rows in the piece, and twice the sum over pairs with a row of an earlier piece of the group. */
static void T1_add(const void *self, const struct visit *to)
{
    const struct pieces *all = self;
    const struct row_groups *g = all->g;
    const struct kernel *k = g->z.model->kernel;
    const struct piece p = piece_of(all, to->number);
    const double *v = g->v + p.start;
    double *Kv = to->work, *pair = Kv + g->inner,
           *scratch = pair + (size_t)g->inner * g->inner, *other = scratch + rows_size(g);
    const struct block own = source_block(&g->rows, p.start + p.i, p.n, scratch);
    double vKv = 0.0, vv = 0.0;
    kernel_diagonal(k, rows_of(&own), Kv);
    scale_columns(1, p.n, own.scale, Kv);
    scale_columns(1, p.n, own.scale, Kv);
    for (int q = 0; q < p.n; q++)
        vv += Kv[q] * v[p.i + q] * v[p.i + q];
    for (int j = 0; j <= p.i; j += g->inner) {
        const struct block there =
            j == p.i ? own : source_block(&g->rows, p.start + j, g->inner, other);
        fill((size_t)p.n, 0.0, Kv);
        pairs_add(k, &own, &there, 1, v + j, pair, Kv);
        vKv += (j < p.i ? 2.0 : 1.0) * dot((size_t)p.n, Kv, v + p.i);
    }
    g->vKv[to->number] = vKv;
    g->vv[to->number] = vv;
}

/* Computes T1 = sum_b sqrt(v_b'K_bb v_b - |A_b v_b|^2) + kappa over groups b of rows, from sums over pieces of groups.
 * A is L^{-1} k(Z, X), L L' = k(Z, Z), v = (y - posterior mean) / noise variance, and kappa allows for rounding. */
static void sum_T1(struct row_groups *g, const struct pieces *all, double *Av)
{
    const int N = g->rows.N, M = g->z.M;
    const double slack = certify_slack(M, N);
    g->T1 = g->kappa = 0.0;
    for (int first = 0; first < all->n; first += all->each) {
        double vKv = 0.0, vv = 0.0;
        fill((size_t)M, 0.0, Av);
        for (int b = first; b < first + all->each && b < all->n; b++) {
            vKv += g->vKv[b];
            vv += g->vv[b];
            add_scaled((size_t)M, 1.0, g->Av + (size_t)b * M, Av);
        }
        const double root = sqrt(slack * vv);
        g->T1 += sqrt(fmax(vKv - sum_squares((size_t)M, Av), 0.0)) + root;
        g->kappa += root;
    }
}

static struct block with_A(const struct row_groups *g, int start, int n, double *scratch,
                           double *A)
{
    const struct block b = source_block(&g->rows, start, n, scratch);
    inducing_features(&g->z, &b, A);
    return b;
}

/* Stores v = (y - A'beta) / s2 and A v of a block, for which the pass computed A = L^{-1} k(Z, X_b). */
static void residuals_at(const struct row_groups *g, const struct visit *to)
{
    const struct residuals residuals = {g->z.M, g->beta, g->z.model->s2, g->v, g->Av};
    double rss = 0.0;
    struct visit block = *to;
    block.sums = &rss;
    const struct sink sink = residuals_sink(&residuals, &rss);
    sink.add(sink.self, &block);
}

/* Adds a piece's part to the lower triangle of Psi = sum_b (N / n_b) A_b E_bb A_b' over groups b of n_b rows, with A =
 * L^{-1} k(Z, X), L L' = k(Z, Z), and the residual prior covariance E. Stores the largest row sum of |E_bb| in the
 * piece. If the visit has A, the piece is a whole group, whose v = (y - A'beta) / s2 and A v are stored too. */
static void T2_add(const void *self, const struct visit *to)
{
    const struct pieces *all = self;
    const struct row_groups *g = all->g;
    const struct piece p = piece_of(all, to->number);
    const int M = g->z.M;
    const size_t inner = (size_t)g->inner, Mn = M * inner;
    double *AE = to->work, *E = AE + Mn, *sums = E + inner * inner,
           *scratch = sums + inner, *other = scratch + rows_size(g),
           *A_i = other + rows_size(g), *A_c = A_i + Mn, largest = 0.0;
    const struct block own =
        to->A != NULL ? to->block : with_A(g, p.start + p.i, p.n, scratch, A_i);
    const double *A = to->A != NULL ? to->A : A_i;
    if (to->A != NULL)
        residuals_at(g, to);
    fill((size_t)M * p.n, 0.0, AE);
    fill((size_t)p.n, 0.0, sums);
    for (int j = 0; j < p.n_b; j += g->inner) {
        const int m = min_int(p.n_b - j, g->inner), itself = j == p.i;
        const struct block there = itself ? own : with_A(g, p.start + j, m, other, A_c);
        const double *A_j = itself ? A : A_c;
        pairs_unexplained(g->z.model->kernel, &own, &there, M, A, A_j, E);
        mult_AB(M, m, p.n, 1.0, A_j, E, 1.0, AE);
        for (int q = 0; q < p.n; q++)
            for (int r = 0; r < m; r++)
                sums[q] += fabs(E[(size_t)q * m + r]);
    }
    add_lower_ABt(M, p.n, (double)g->rows.N / p.n_b, AE, A, to->sums);
    for (int q = 0; q < p.n; q++)
        largest = fmax(largest, sums[q]);
    g->largest[to->number] = largest;
}

static double sum_lam(const struct row_groups *g, const struct pieces *all)
{
    double lam = 0.0;
    for (int first = 0; first < all->n; first += all->each) {
        double largest = 0.0;
        for (int b = first; b < first + all->each && b < all->n; b++)
            largest = fmax(largest, g->largest[b]);
        lam += largest;
    }
    return lam;
}

/* Returns the number of rows in a group, if N rows are cut into equal groups of at most `rows` rows. */
static int even_groups(int N, int rows)
{
    const int groups = N / rows + (N % rows > 0);
    return N / groups + (N % groups > 0);
}

static void run_pieces(struct row_groups *g, const struct pieces *all, struct sink sink)
{
    struct pass pass = {.plan = plan_for(&g->pass.plan, all->n, 1)};
    pass_run(&pass, sink);
}

static void norms_open(struct row_groups *g)
{
    const int N = g->rows.N;
    struct arena *arena = g->pass.plan.arena;
    g->t2 = g->t2 > 0 ? even_groups(N, g->t2) : 0;
    g->inner = g->t2 > 0 ? min_int(g->t2, g->pass.plan.block) : g->pass.plan.block;
    g->pass.plan = plan_for(&g->pass.plan, N, g->inner);
    g->pass.rows = &g->rows;
    g->pass.z = &g->z;
    const size_t most = 3 * ((size_t)N / g->inner + 1); /* largest number of pieces */
    g->v = arena_take(arena, (size_t)N);
    g->Av = arena_take(arena, (size_t)g->z.M * (N / g->inner + 1));
    g->vKv = arena_take(arena, most);
    g->vv = arena_take(arena, most);
    g->largest = arena_take(arena, most);
}

/* Runs T2_add() over all groups. If a group has one piece, the pass computes A, otherwise T2_add() does. */
static void run_T2(struct row_groups *g)
{
    const int N = g->rows.N, M = g->z.M;
    const size_t n = (size_t)g->inner, MM = (size_t)M * M;
    const struct pieces all = pieces_of(g, g->t2);
    const size_t more = (M + n + 1) * n + 2 * rows_size(g);
    if (all.each == 1)
        pass_run(&g->pass, sum_sink(&all, T2_add, 0, more, MM, g->Psi));
    else
        run_pieces(g, &all, sum_sink(&all, T2_add, 0, more + 2 * M * n, MM, g->Psi));
    mirror_lower(M, g->Psi);
    g->lam = sum_lam(g, &all);
    g->spread = (double)N / (N - (N - 1) / g->t2 * g->t2);
}

void norms_run(struct row_groups *g)
{
    norms_open(g);
    const int N = g->rows.N, M = g->z.M;
    const size_t n = (size_t)g->inner, MM = (size_t)M * M;
    const struct residuals residuals = {M, g->beta, g->z.model->s2, g->v, g->Av};
    double rss;
    g->T1 = g->lam = INFINITY;
    g->kappa = 0.0;
    g->spread = 1.0;
    fill(MM, 0.0, g->Psi);
    if (g->t2 != g->inner) /* else run_T2() stores the residuals */
        pass_run(&g->pass, residuals_sink(&residuals, &rss));
    if (g->t2 > 0)
        run_T2(g);
    g->vv_sum = sum_squares((size_t)N, g->v);
    if (g->t1 > 0) {
        const int whole = g->t1 / g->inner * g->inner; /* A v is known for whole pieces */
        const struct pieces all = pieces_of(g, g->t1 >= N  ? N
                                               : whole > 0 ? whole
                                                           : g->inner);
        run_pieces(g, &all, row_sink(&all, T1_add, 0, n + n * n + 2 * rows_size(g)));
        sum_T1(g, &all, arena_take(g->pass.plan.arena, (size_t)M));
    }
}

/* ---- sums over the data for a few new rows --------------------------------------------------- */

struct crossing_rows {
    const struct posterior *posterior;
    const struct block *x;
    const double *a; /* L^{-1} k(Z, x), L L' = k(Z, Z) */
};

/* For each new row x, adds a block's part to A e and |e|^2. A is L^{-1} k(Z, X), L L' = k(Z, Z), and e has the residual
 * prior covariances of f(x) with f at the data X. */
static void crossing_add(const void *self, const struct visit *v)
{
    const struct crossing_rows *c = self;
    const int M = c->posterior->z.M, n = c->x->n, n_b = v->block.n;
    const struct kernel *k = c->posterior->z.model->kernel;
    double *E = v->work, *ee = v->sums + (size_t)M * n;
    pairs_unexplained(k, c->x, &v->block, M, c->a, v->A, E);
    mult_AB(M, n_b, n, 1.0, v->A, E, 1.0, v->sums);
    for (int j = 0; j < n; j++)
        ee[j] += sum_squares((size_t)n_b, E + (size_t)j * n_b);
}

void crossing_run(const struct posterior *p, const struct block *x, struct pass *pass,
                  double *cross, double *gain, double *size)
{
    const int M = p->z.M, n = x->n;
    const size_t m = (size_t)M;
    double *Ae = arena_take(pass->plan.arena, (m + 1) * n), *ee = Ae + m * n,
           *Cx = arena_take(pass->plan.arena, m * n);
    const struct crossing_rows self = {p, x, Cx};
    inducing_features(&p->z, x, Cx);
    pass_run(pass, sum_sink(&self, crossing_add, (size_t)n, 0, (m + 1) * n, Ae));
    solve_lower(M, n, p->C, Ae); /* C^{-1} A e,  C^{-1} a */
    solve_lower(M, n, p->C, Cx);
    for (int j = 0; j < n; j++) {
        cross[j] = dot(m, Cx + m * j, Ae + m * j);
        gain[j] = (ee[j] - sum_squares(m, Ae + m * j)) / p->z.model->s2;
        size[j] = ee[j];
    }
}
