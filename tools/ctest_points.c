/* Tests of inducing points, auxiliary distributions and greedy selection. */
#include <math.h>
#include "ctest.h"
#include "linalg.h"
#include "select.h"

static const struct shape shapes[] = {/* M, N, columns, d, n_u, q */
                                      {1, 1, 1, 1, 1, 1},
                                      {4, 6, 3, 2, 5, 3},
                                      {5, 1, 2, 1, 2, 4},
                                      {3, 9, 1, 1, 1, 2}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* ---- inducing ---------------------------------------------------------------------- */

static void factor_and_whiten(struct problem *p)
{
    const int M = p->shape.M, N = p->shape.N;
    const struct dense f = dense_of(p);
    const struct matrix K = naive_kernel(&p->covariance, M, p->Z, M, N, p->X, N);
    struct matrix L = {M, M, array((size_t)M * M)}, A = {M, N, array((size_t)M * N)};
    double *in_place = array_copy((size_t)M * N, K.x);
    struct inducing z = problem_points(p);
    CHECK(inducing_factor(&z, L.x) == STATUS_OK);
    CHECK_ARRAY((size_t)M * M, times(L, transposed(L)).x, f.Kmm.x, 1e-14);
    inducing_whiten(&z, N, p->scale, K.x, A.x);
    CHECK_ARRAY((size_t)M * N, times(L, A).x, transposed(f.Kxm).x, 1e-13);
    inducing_whiten(&z, N, p->scale, in_place, in_place);
    CHECK_ARRAY((size_t)M * N, in_place, A.x, 0.0);
    inducing_whiten(&z, 0, p->scale ? array(0) : NULL, array(0), array(0));
}

/* Checks that inducing_ladder() finds the first sufficient jitter for two equal points. */
static void ladder(const char *name)
{
    const struct covariance c = covariance_new(name, 1, 1);
    double Z[] = {0.4, -0.7, 0.4, 0.9}, *L = array(16);
    const struct model model = {&c.kernel, 1.0};
    struct inducing z = {&model, 4, 1, Z, NULL, 0.0}, below = z;
    CHECK(inducing_ladder(&z, 0.0, L) == STATUS_KMM_NOT_PD);
    CHECK(z.jitter == 0.0);
    CHECK(inducing_ladder(&z, 1e-6, L) == STATUS_OK);
    CHECK(z.jitter >= 1e-15 && z.jitter <= 1e-10);
    below.jitter = z.jitter / 10.0;
    CHECK(z.jitter < 2e-15 || inducing_factor(&below, L) == STATUS_KMM_NOT_PD);
    for (double start = 1e-24; start < 5e-23; start *= 10.0) { /* from several jitters */
        z.jitter = start;
        CHECK(inducing_ladder(&z, 1e-6, L) == STATUS_OK);
        below.jitter = z.jitter / 10.0;
        CHECK(inducing_factor(&below, L) == STATUS_KMM_NOT_PD);
    }
    z.jitter = 1e-3; /* a sufficient jitter is not raised */
    CHECK(inducing_ladder(&z, 1.0, L) == STATUS_OK);
    CHECK(z.jitter == 1e-3);
}

/* Checks that the last jitter is tried, although products are rounded. 200 close points need more than 1e-15. */
static void last_jitter(void)
{
    const struct covariance c = covariance_new("se", 1, 1);
    double Z[200], *L = array(40000);
    const struct model model = {&c.kernel, 1.0};
    struct inducing z = {&model, 200, 1, Z, NULL, 0.0};
    for (int i = 0; i < 200; i++)
        Z[i] = 1e-3 * i;
    CHECK(inducing_ladder(&z, 1e-6, L) == STATUS_OK);
    CHECK(z.jitter > 5e-15);
    const double most = pow(10.0, round(log10(z.jitter)));
    z.jitter = 0.0;
    CHECK(inducing_ladder(&z, most, L) == STATUS_OK);
}

void group_inducing(void)
{
    last_jitter();
    for_problems(shapes, N_SHAPES, 0, factor_and_whiten);
    for (int k = 0; k < n_kernels; k++)
        ladder(kernel_names[k]);
}

/* ---- lowrank ----------------------------------------------------------------------- */

/* F = sum(Wm_bar * k(Z, U) W) */
struct points_sum {
    const struct lowrank *aux;
    struct inducing z; /* without L: T is Wm */
    const double *Wm_bar;
};

static double points_sum(const void *context)
{
    const struct points_sum *f = context;
    const size_t taken = arrays_taken(), M = (size_t)f->z.M, size = M * f->aux->q;
    double *Wm = array(size);
    lowrank_points(f->aux, &f->z, array(M * f->aux->n_u), Wm);
    const double sum = dot(size, Wm, f->Wm_bar);
    arrays_release(taken);
    return sum;
}

static void lowrank(struct problem *p)
{
    const struct shape s = p->shape;
    const struct lowrank aux = problem_aux(p);
    const struct dense f = dense_of(p);
    const size_t Mu = (size_t)s.M * s.n_u, Mq = (size_t)s.M * s.q,
                 Md = (size_t)s.M * s.columns, qN = (size_t)s.q * s.N;
    double *K_zu = array(Mu), *Wm = array(Mq);
    const struct panel panel = {&aux, NULL};
    const struct block rows = block_rows(p, 0, s.N), none = {.ldx = 1};
    const double *Wt = panel_rows(&panel, &rows, array(panel_size(&panel, s.N)));
    CHECK_ARRAY(qN, Wt, transposed(f.Wx).x, 1e-14);
    panel_rows(&panel, &none, array(0));
    const struct inducing z = problem_points(p);
    lowrank_points(&aux, &z, K_zu, Wm);
    CHECK_ARRAY(Mq, Wm, f.Wm.x, 1e-14);

    const double *dZ0 = array_random(Md, -1.0, 1.0);
    const struct points_sum sum = {&aux, z, array_random(Mq, -1.0, 1.0)};
    double *dZ = array_copy(Md, dZ0);
    lowrank_pull(&aux, &z, K_zu, sum.Wm_bar, &arrays, dZ);
    for (size_t i = 0; i < Md; i++)
        CHECK_NEAR(dZ[i] - dZ0[i], slope(points_sum, &sum, p->Z + i), 1e-8);
}

void group_lowrank(void)
{
    for_problems(shapes, N_SHAPES, 0, lowrank);
}

/* ---- select ------------------------------------------------------------------------ */

/* Checks pivots by pivoted Cholesky on the whole matrix E = K: each pivot's outer product is subtracted. */
static void check_pivots(const struct select_state *s, struct matrix E)
{
    const int n = s->X.n;
    for (int m = 0; m < s->m; m++) {
        int best = 0;
        for (int i = 1; i < n; i++)
            if (at(E, i, i) > at(E, best, best) + 1e-12) /* of equal ones, the first */
                best = i;
        CHECK(s->pivot[m] == best);
        double *a = array(n);
        for (int i = 0; i < n; i++)
            a[i] = at(E, i, best) / sqrt(at(E, best, best));
        CHECK_ARRAY(n, s->A + (size_t)m * n, a, 1e-10);
        const struct matrix column = matrix_of(n, 1, a);
        E = plus(E, -1.0, times(column, transposed(column)));
        CHECK_NEAR(s->t[m], trace_of(E), 1e-12);
    }
    for (int i = 0; i < n; i++)
        CHECK_NEAR(s->E[i], at(E, i, i), 1e-12);
}

static void selection(const char *name, int n, int columns, int most, int twins)
{
    const struct covariance c = covariance_new(name, 1, columns);
    const int ldx = n + 2, distinct = n - twins;
    double *X = array((size_t)(columns - 1) * ldx + n);
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < n; i++)
            X[(size_t)j * ldx + i] =
                i < distinct ? uniform(-3.0, 3.0) : X[(size_t)j * ldx + i - distinct];
    struct select_state s = {.kernel = &c.kernel,
                             .X = {n, X, ldx},
                             .most = most,
                             .m = -1,
                             .pivot = array_int(most)};
    select_start(&s, &arrays);
    CHECK(s.m == 0);
    while (select_step(&s, 1e-8))
        CHECK(s.m <= most);
    CHECK(select_step(&s, 1e-8) == 0); /* also in further calls */
    CHECK(s.m <= distinct && (s.m == most || s.m == distinct));
    check_pivots(&s, naive_kernel(&c, n, X, ldx, n, X, ldx));
    for (int m = 0; m < s.m; m++) {
        CHECK(s.E[s.pivot[m]] == 0.0);
        for (int i = distinct; i < n; i++)
            CHECK(i - distinct != s.pivot[m] || s.E[i] == 0.0);
    }
}

void group_select(void)
{
    for (int k = 0; k < n_kernels; k++) {
        selection(kernel_names[k], 1, 1, 1, 0);
        selection(kernel_names[k], 1, 2, 3, 0);
        selection(kernel_names[k], 7, 2, 3, 0);
        selection(kernel_names[k], 5, 1, 5, 2);
        selection(kernel_names[k], 8, 2, 8, 4);
    }
}

/* ---- guided ------------------------------------------------------------------------ */

/* Checks that each pivot has the largest v'P v / v'v; v is a column of V without its
 * projection on the earlier pivots. */
static void guided(int r, int n, int most, int twins)
{
    const int distinct = n - twins;
    double *V = array_random((size_t)r * n, -1.0, 1.0), *P = array((size_t)r * r),
           *root = array_random((size_t)r * r, -1.0, 1.0);
    for (int i = distinct; i < n; i++)
        copy((size_t)r, V + (size_t)(i - distinct) * r, V + (size_t)i * r);
    mult_AtB(r, r, r, 1.0, root, root, 0.0, P);
    struct guided_state g = {
        .r = r, .n = n, .most = most, .V = V, .P = P, .m = -1, .pivot = array_int(most)};
    guided_start(&g, &arrays);
    CHECK(g.m == 0);
    while (guided_step(&g, 1e-10))
        CHECK(g.m <= most);
    CHECK(guided_step(&g, 1e-10) == 0);
    const int rank = r < distinct ? r : distinct;
    CHECK(g.m == (most < rank ? most : rank));

    struct matrix left = matrix_of(r, n, array_copy((size_t)r * n, V));
    const struct matrix Pm = matrix_of(r, r, P);
    for (int m = 0; m < g.m; m++) {
        double best = 0.0, mine = 0.0;
        for (int i = 0; i < n; i++) {
            const double *v = left.x + (size_t)i * r, length = sum_squares((size_t)r, v);
            const struct matrix c = matrix_of(r, 1, array_copy((size_t)r, v));
            const double worth =
                length > 1e-10 ? trace_of(times(transposed(c), times(Pm, c))) / length
                               : 0.0;
            if (worth > best)
                best = worth;
            if (i == g.pivot[m])
                mine = worth;
        }
        CHECK(mine > best * (1.0 - 1e-8));
        const double *v = left.x + (size_t)g.pivot[m] * r;
        double *b = array_copy((size_t)r, v);
        const double length = sqrt(sum_squares((size_t)r, v));
        for (int j = 0; j < r; j++)
            b[j] /= length;
        const struct matrix B = matrix_of(r, 1, b);
        left = plus(left, -1.0, times(B, times(transposed(B), left)));
    }
}

void group_guided(void)
{
    guided(1, 1, 1, 0);
    guided(3, 5, 2, 0);
    guided(4, 9, 4, 3);
    guided(6, 5, 5, 2);
    guided(5, 70, 5, 0);
    guided(20, 150, 12, 10);
}
