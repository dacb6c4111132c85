#include <float.h>
#include <math.h>
#include "gram.h"
#include "linalg.h"
#include "local.h"

/* A block of data rows has at most this many kernel values with rows_new and near_rows, unless it has only 32 rows. */
enum { most_near = 1 << 22 };

/* ---- kriging weights, one group of new rows at a time --------------------------------------- */

static int group_size(const struct local *l, int i)
{
    return l->start[i + 1] - l->start[i];
}

static int largest_group(const struct local *l)
{
    int largest = 0;
    for (int i = 0; i < l->n_groups; i++)
        largest = group_size(l, i) > largest ? group_size(l, i) : largest;
    return largest;
}

struct group { /* scratch of one group */
    double *X, *scale, *K, *k, *prior, *rest;
};

static struct group group_of(const struct local *l, double *work)
{
    const size_t n_c = (size_t)l->n_c, g = (size_t)largest_group(l);
    struct group s = {.X = work};
    s.scale = s.X + n_c * l->rows.columns;
    s.K = s.scale + n_c;
    s.k = s.K + n_c * n_c;
    s.prior = s.k + n_c * g;
    s.rest = s.prior + g;
    return s;
}

/* Computes the kernel matrix of the data rows S that predict group i, and k(S, x) for the new rows x of the group. */
static void group_kernels(const struct local *l, int i, struct group s)
{
    const struct kernel *k = l->posterior->z.model->kernel;
    const struct block *near = &l->near_rows;
    const int n_c = l->n_c, *member = l->member + (size_t)n_c * i;
    const struct block S = {n_c, s.X, n_c, NULL, s.scale, 0};
    struct block x = l->rows_new;
    x.X += l->start[i];
    x.n = group_size(l, i);
    for (int r = 0; r < n_c; r++) {
        for (int j = 0; j < l->rows.columns; j++)
            s.X[(size_t)j * n_c + r] = near->X[j * (size_t)near->n + member[r]];
        s.scale[r] = or_one(near->scale, member[r]);
    }
    pairs_kernel(k, &S, &S, s.K);
    if (l->of.cross == NULL) {
        pairs_kernel(k, &x, &S, s.k);
        return;
    }
    for (int j = 0; j < x.n; j++)
        for (int r = 0; r < n_c; r++)
            s.k[(size_t)j * n_c + r] =
                s.scale[r] * l->of.cross[(size_t)(l->start[i] + j) * l->rows.N +
                                         l->S[(size_t)n_c * i + r]];
}

static void prior_variances(const struct local *l, int at, int g, double *prior)
{
    if (l->of.cross == NULL)
        kernel_diagonal(l->posterior->z.model->kernel,
                        rows_from(rows_of(&l->rows_new), at, g), prior);
    else
        copy((size_t)g, l->of.prior + at, prior);
}

/* Computes the kriging weights W = (K + s2 I)^{-1} k(S, x) (n_c x g) of a group's g new rows x, and the fields of
 * `point`. If the Cholesky factorisation fails, s2 is increased; if that fails too, W = 0. */
static void weigh(int n_c, int g, double s2, struct group s, double *W,
                  struct kriged *point)
{
    const double *K = s.K, *k_S = s.k;
    double *C = s.rest, *KW = C + (size_t)n_c * n_c, k_most = 0.0;
    for (int r = 0; r < n_c; r++)
        k_most = fmax(k_most, K[(size_t)r * n_c + r]);
    double jitter = k_most * (n_c + 16.0) * DBL_EPSILON;
    int failed = chol_shifted(n_c, K, s2, C);
    for (int i = 0; i < 8 && failed; i++, jitter *= 10.0) /* any w gives valid bounds */
        failed = chol_shifted(n_c, K, s2 + jitter, C);
    copy((size_t)n_c * g, k_S, W);
    if (failed)
        fill((size_t)n_c * g, 0.0, W);
    else
        solve_chol(n_c, g, C, W);
    for (size_t i = 0; i < (size_t)n_c * g; i++)
        if (!isfinite(W[i]))
            W[i] = 0.0;
    mult_AB(n_c, n_c, g, 1.0, K, W, 0.0, KW);
    for (int j = 0; j < g; j++) {
        const double *w = W + (size_t)j * n_c, *k = k_S + (size_t)j * n_c,
                     *Kw = KW + (size_t)j * n_c;
        double wh = 0.0, wk = 0.0, w1 = 0.0;
        for (int i = 0; i < n_c; i++) {
            wk += w[i] * k[i];
            wh += w[i] * (k[i] - Kw[i] - s2 * w[i]);
            w1 += s.scale[i] * fabs(w[i]);
        }
        /* J = prior - 2 w'k + w'(K + s2 I) w = prior - w'k - w'h, where h = k - (K + s2 I) w */
        point[j] = (struct kriged){.prior = s.prior[j],
                                   .J = s.prior[j] - wk - wh,
                                   .wh = wh,
                                   .ww = sum_squares((size_t)n_c, w),
                                   .w1 = w1};
    }
}

static void group_add(const void *self, const struct visit *v)
{
    const struct local *l = self;
    const struct group s = group_of(l, v->work);
    const int n_c = l->n_c, i = v->number, g = group_size(l, i), at = l->start[i];
    group_kernels(l, i, s);
    prior_variances(l, at, g, s.prior);
    weigh(n_c, g, l->posterior->z.model->s2, s, l->W + (size_t)n_c * at, l->point + at);
}

/* ---- residuals h = k(X, x) - (K + s2 I) w, one block of rows at a time ---------------------- */

/* Subtracts (K + s2 I) w at the n rows of a block from H (n x g), for each column w of W. K_S (n x n_c) has kernel
 * values with the n_c rows S, outside which w is 0. Adds the features v->A times the block's w to Aw (M x g). */
static void subtract_weighted(const struct visit *v, int M, int n_c, int g, double s2,
                              const double *K_S, const int *S, const double *W, double *H,
                              double *Aw)
{
    const int n = v->block.n;
    mult_AB(n, n_c, g, -1.0, K_S, W, 1.0, H);
    for (int i = 0; i < n_c; i++) {
        const int row = S[i] - v->block.first;
        for (int j = 0; j < g && row >= 0 && row < n; j++) {
            const double w = W[(size_t)j * n_c + i];
            H[(size_t)j * n + row] -= s2 * w;
            add_scaled((size_t)M, w, v->A + (size_t)row * M, Aw + (size_t)j * M);
        }
    }
}

/* Adds a block's part to A h, A w (M x n_new each) and |h|^2: A is v->A, w kriging weights, h = k_x - (K + s2 I) w. */
static void rows_add(const void *self, const struct visit *v)
{
    const struct local *l = self;
    const struct posterior *p = l->posterior;
    const int n = v->block.n, n_c = l->n_c, M = p->z.M, n_new = l->rows_new.n;
    const size_t Mn = (size_t)M * n_new;
    double *Ah = v->sums, *Aw = Ah + Mn, *hh = Aw + Mn, *K_near = v->work,
           *H = K_near + (size_t)n * l->near_rows.n, *K_S = H + (size_t)n * n_new;
    pairs_kernel(p->z.model->kernel, &l->near_rows, &v->block, K_near);
    if (l->of.cross == NULL)
        pairs_kernel(p->z.model->kernel, &l->rows_new, &v->block, H);
    for (int j = 0; j < n_new && l->of.cross != NULL; j++)
        for (int i = 0; i < n; i++)
            H[(size_t)n * j + i] =
                or_one(v->block.scale, i) *
                l->of.cross[(size_t)j * l->rows.N + v->block.first + i];
    for (int i = 0; i < l->n_groups; i++) {
        const int at = l->start[i], g = group_size(l, i),
                  *member = l->member + (size_t)n_c * i, *S = l->S + (size_t)n_c * i;
        const double *W = l->W + (size_t)n_c * at;
        for (int r = 0; r < n_c; r++)
            copy((size_t)n, K_near + (size_t)n * member[r], K_S + (size_t)n * r);
        subtract_weighted(v, M, n_c, g, p->z.model->s2, K_S, S, W, H + (size_t)n * at,
                          Aw + (size_t)M * at);
    }
    mult_AB(M, n, n_new, 1.0, v->A, H, 1.0, Ah);
    for (int j = 0; j < n_new; j++)
        hh[j] += sum_squares((size_t)n, H + (size_t)n * j);
}

/* ---- bounds on the variance of the exact GP -------------------------------------------------- */

static void certify_points(const struct local *l, const struct local_bounds *to)
{
    const struct posterior *p = l->posterior;
    const struct block *x = &l->rows_new;
    const int M = p->z.M, n = x->n;
    const size_t m = (size_t)M;
    const double s2 = p->z.model->s2;
    double sum_w = 0.0;
    struct arena *arena = l->pass.plan.arena;
    double *a = arena_take(arena, m * n), *Cx = arena_take(arena, m * n), *Ah = l->sums,
           *Aw = Ah + m * n, *hh = Aw + m * n;
    for (int i = 0; i < l->rows.N; i++)
        sum_w += weight_of(l->rows.scale, i);
    if (l->of.cross == NULL)
        inducing_features(&p->z, x, a);
    else
        copy(m * n, l->of.features, a);
    copy(m * n, a, Cx);
    solve_lower(M, n, p->C, Cx); /* C^{-1} a,  C^{-1} A h */
    solve_lower(M, n, p->C, Ah);
    add_scaled(m * n, -1.0, a, Aw);
    for (int j = 0; j < n; j++) {
        struct kriged *point = l->point + j;
        const double *cx = Cx + m * j, *ch = Ah + m * j;
        const double size = l->of.cross == NULL ? 0.0 : l->of.size[j];
        point->size = fmax(point->prior, size);
        point->prior += 4.0 * l->norms->unit * size;
        point->sor = s2 * sum_squares(m, cx);
        point->hh = hh[j];
        point->ch = sum_squares(m, ch);
        point->xh = dot(m, cx, ch);
        point->JQ = sum_squares(m, Aw + m * j) + s2 * point->ww;
        const struct kriging_bounds bounds =
            certify_kriged(l->norms, s2, l->n_c + l->of.terms, sum_w, point);
        to->J[j] = bounds.J;
        to->q[j] = bounds.q;
        to->ww[j] = point->ww;
        to->var_lower[j] = bounds.var_lower;
        to->var_upper[j] = bounds.var_upper;
    }
}

void local_run(struct local *l, const struct local_bounds *to)
{
    const size_t M = (size_t)l->posterior->z.M, n_new = (size_t)l->rows_new.n,
                 n_c = (size_t)l->n_c, g = (size_t)largest_group(l);
    const int most = most_near / (l->near.N + l->rows_new.n);
    struct arena *arena = l->pass.plan.arena;
    struct pass groups = {.plan = plan_for(&l->pass.plan, l->n_groups, 1)};
    if (l->pass.plan.block > most) /* fewer rows in a block */
        l->pass.plan.block = most > 32 ? most : 32;
    l->pass.plan.n_blocks = (l->rows.N - 1) / l->pass.plan.block + 1;
    l->pass.rows = &l->rows;
    l->pass.z = &l->posterior->z;
    l->sums = arena_take(arena, (2 * M + 1) * n_new);
    l->near_rows = source_block(&l->near, 0, l->near.N,
                                arena_take(arena, source_size(&l->near, l->near.N)));
    for (size_t i = 0; i < n_c * l->n_groups; i++)
        l->S[i] = l->near.order[l->member[i]];
    pass_run(&groups,
             row_sink(l, group_add, 0, n_c * (l->rows.columns + 1 + 2 * (n_c + g)) + g));
    pass_run(&l->pass, sum_sink(l, rows_add, l->near.N + n_new + n_c, 0,
                                (2 * M + 1) * n_new, l->sums));
    certify_points(l, to);
}
