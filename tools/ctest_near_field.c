/* Compares near_posterior.h with dense algebra: rows given earlier rows, and new rows given any rows. */
#include <math.h>
#include "ctest.h"
#include "linalg.h"
#include "near_posterior.h"

/* For the rows of the data, then the new rows: their features A (M x all), and E(x, z) = k(x, z) - a_x'a_z. */
struct field_oracle {
    const struct problem *p;
    int N, n, s; /* rows, new rows, neighbours */
    double *X;   /* N + n rows                 */
    struct matrix A, E, y;
};

static struct field_oracle oracle_of(const struct problem *p, const double *new_rows,
                                     int n, int s)
{
    const int N = p->shape.N, M = p->shape.M, all = N + n, columns = p->shape.columns;
    struct field_oracle o = {p, N, n, s, array((size_t)all * columns), {0}, {0}, {0}};
    for (int j = 0; j < columns; j++)
        for (int i = 0; i < all; i++)
            o.X[j * all + i] = i < N ? p->X[j * N + i] : new_rows[j * n + i - N];
    double *scale = array((size_t)all), *L;
    o.y = matrix_new(all, 1);
    for (int i = 0; i < all; i++) {
        scale[i] = i < N && p->scale != NULL ? p->scale[i] : 1.0;
        o.y.x[i] = i < N ? scale[i] * p->y[i] : 0.0;
    }
    struct matrix K = naive_kernel(&p->covariance, all, o.X, all, all, o.X, all),
                  Kzz = naive_kernel(&p->covariance, M, p->Z, M, M, p->Z, M);
    for (int m = 0; m < M; m++)
        Kzz.x[m * M + m] *= 1.0 + p->jitter;
    L = array_copy((size_t)M * M, Kzz.x);
    CHECK(chol_lower(M, L) == 0);
    const struct matrix Kzx = naive_kernel(&p->covariance, M, p->Z, M, all, o.X, all);
    o.A = scaled_columns(times(inverse(matrix_of(M, M, L), NULL), Kzx), scale);
    o.E = plus(scaled_rows(scale, scaled_columns(K, scale)), -1.0,
               times(transposed(o.A), o.A));
    return o;
}

static double distance2(const struct field_oracle *o, int a, int b)
{
    const struct covariance *c = &o->p->covariance;
    const int all = o->N + o->n;
    double sum = 0.0;
    for (int j = 0; j < c->d; j++) {
        const double *x = o->X + (size_t)(o->p->shape.columns - 1 - j) * all;
        sum += pow((x[a] - x[b]) / c->lengthscale[j], 2);
    }
    return sum;
}

/* Finds near [s], the nearest rows of x. If `rank` is not NULL, they have lower ranks than x. Returns how many there
 * are. */
static int nearest_rows(const struct field_oracle *o, int x, const int *rank, int *near)
{
    int found = 0;
    for (; found < o->s; found++) {
        int best = -1;
        for (int i = 0; i < o->N; i++) {
            int taken = i == x || (rank != NULL && rank[i] >= rank[x]);
            for (int j = 0; j < found; j++)
                taken |= near[j] == i;
            if (!taken && (best < 0 || distance2(o, x, i) < distance2(o, x, best)))
                best = i;
        }
        if (best < 0)
            break;
        near[found] = best;
    }
    return found;
}

/* Returns the rows a and the columns b of E. */
static struct matrix part_of(const struct field_oracle *o, int n_a, const int *a, int n_b,
                             const int *b)
{
    struct matrix E = matrix_new(n_a, n_b);
    for (int i = 0; i < n_a; i++)
        for (int j = 0; j < n_b; j++)
            E.x[(size_t)j * n_a + i] = at(o->E, a[i], b[j]);
    return E;
}

/* A row given its s nearest rows (near.h) */
struct beside {
    int s, *near;
    struct matrix u, r;
    double mean, left;
};

static struct beside beside_of(const struct field_oracle *o, int x, const int *rank)
{
    const int M = o->A.rows;
    struct beside b = {.near = array_int((size_t)o->s)};
    b.s = nearest_rows(o, x, rank, b.near);
    const struct matrix e = part_of(o, b.s, b.near, 1, &x),
                        N = plus(part_of(o, b.s, b.near, b.s, b.near), o->p->s2,
                                 identity(b.s));
    b.u = times(inverse(N, NULL), e);
    b.r = matrix_of(M, 1, o->A.x + (size_t)x * M);
    b.left = at(o->E, x, x);
    for (int j = 0; j < b.s; j++) {
        b.mean += b.u.x[j] * o->y.x[b.near[j]];
        b.left -= b.u.x[j] * e.x[j];
        for (int m = 0; m < M; m++)
            b.r.x[m] -= b.u.x[j] * at(o->A, m, b.near[j]);
    }
    return b;
}

/* P = I + sum a~a~', beta = P^{-1} sum a~y~, minus the log density, and d of every row (near_posterior.h) */
struct rows_answer {
    struct matrix P, P_inverse, beta;
    double minus_log, *d;
};

static struct rows_answer rows_wanted(const struct field_oracle *o, const int *rank)
{
    const int M = o->A.rows;
    struct rows_answer w = {identity(M), {0}, {0}, 0.0, array((size_t)o->N)};
    struct matrix Ay = matrix_new(M, 1);
    double log_det, yy = 0.0, log_d = 0.0;
    for (int i = 0; i < o->N; i++) {
        const struct beside b = beside_of(o, i, rank);
        const double d = w.d[i] = b.left + o->p->s2, y = o->y.x[i] - b.mean;
        w.P = plus(w.P, 1.0 / d, times(b.r, transposed(b.r)));
        Ay = plus(Ay, y / d, b.r);
        yy += y * y / d;
        log_d += log(d);
    }
    w.P_inverse = inverse(w.P, &log_det);
    w.beta = times(w.P_inverse, Ay);
    w.minus_log = 0.5 * (log_d + log_det + yy - times(transposed(Ay), w.beta).x[0] +
                         o->N * log(2.0 * 3.14159265358979323846));
    return w;
}

static struct source source_of(int N, int columns, double *X, double *y, double *scale)
{
    return (struct source){
        .N = N, .columns = columns, .X = X, .ldx = N, .y = y, .scale = scale};
}

static void check_kept(const struct field_oracle *o, const int *rank,
                       const struct near_field *f)
{
    for (int i = 0; i < o->N; i++) {
        const struct beside b = beside_of(o, i, rank);
        const size_t first = (size_t)i * o->s;
        for (int j = 0; j < o->s; j++)
            CHECK(f->near_rows[first + j] == (j < b.s ? b.near[j] + 1 : 0));
        CHECK_ARRAY((size_t)b.s, f->u + first, b.u.x, 1e-9);
    }
}

/* Returns the covariance of the residuals of two rows, given the inducing variables. */
static double left_together(const struct field_oracle *o, int x, const struct beside *a,
                            int z, const struct beside *b)
{
    double sum = at(o->E, x, z);
    for (int i = 0; i < a->s; i++)
        sum -= a->u.x[i] * at(o->E, a->near[i], z);
    for (int j = 0; j < b->s; j++) {
        sum -= b->u.x[j] * at(o->E, x, b->near[j]);
        for (int i = 0; i < a->s; i++)
            sum += a->u.x[i] * b->u.x[j] *
                   (at(o->E, a->near[i], b->near[j]) +
                    (a->near[i] == b->near[j] ? o->p->s2 : 0.0));
    }
    return sum;
}

static void new_rows_of(const struct field_oracle *o, const struct rows_answer *rows,
                        const struct near_field *like, const double *C,
                        const double *beta, double *X)
{
    const size_t n = (size_t)o->n;
    struct near_joint j = {.at = {.field = {.z = like->z, .rows = like->rows}}};
    struct near_field *f = &j.at.field;
    f->targets = source_of(o->n, like->rows.columns, X, NULL, NULL);
    f->s = f->few = o->s;
    f->plan = plan_for(&like->plan, o->n, 3);
    j.at.C = C;
    j.at.beta = beta;
    j.at.mean = array(n);
    j.at.var_near = array(n);
    j.at.var_far = array(n);
    j.covariance = array(n * n);
    CHECK(near_joint_run(&j) == STATUS_OK);
    for (int i = 0; i < o->n; i++) {
        const struct beside b = beside_of(o, o->N + i, NULL);
        const struct matrix Pr = times(rows->P_inverse, b.r);
        CHECK_NEAR(j.at.mean[i], b.mean + times(transposed(b.r), rows->beta).x[0], 1e-9);
        CHECK_NEAR(j.at.var_near[i], b.left, 1e-9);
        CHECK_NEAR(j.at.var_far[i], times(transposed(b.r), Pr).x[0], 1e-9);
        for (int l = 0; l < o->n; l++) {
            const struct beside c = beside_of(o, o->N + l, NULL);
            CHECK_NEAR(j.covariance[(size_t)i * n + l],
                       times(transposed(c.r), Pr).x[0] +
                           left_together(o, o->N + i, &b, o->N + l, &c),
                       1e-9);
        }
    }
}

/* Predicts f at new rows as functionals with given neighbours: the nearest half of their s neighbours. */
static void given_of(const struct field_oracle *o, const struct rows_answer *rows,
                     const struct near_field *like, const double *C, const double *beta,
                     double *X)
{
    const size_t n = (size_t)o->n, s = (size_t)o->s, M = (size_t)like->z.M;
    struct near_predicting p = {.field = {.z = like->z, .rows = like->rows}};
    struct near_field *f = &p.field;
    f->targets = source_of(o->n, like->rows.columns, X, NULL, NULL);
    f->s = o->s;
    f->plan = plan_for(&like->plan, o->n, 3);
    struct field_oracle half = *o;
    half.s = (o->s + 1) / 2;
    int *given = array_int(n * s);
    double *cross = array(n * s), *prior = array(n);
    for (size_t i = 0; i < n; i++) {
        const struct beside b = beside_of(&half, o->N + (int)i, NULL);
        const double *a = o->A.x + (o->N + i) * M;
        prior[i] = at(o->E, o->N + (int)i, o->N + (int)i) + sum_squares(M, a);
        for (size_t j = 0; j < s; j++) {
            const int there = (int)j < b.s, row = there ? b.near[j] : 0;
            const double scale = like->rows.scale == NULL ? 1.0 : like->rows.scale[row];
            given[i * s + j] = there ? row : -1;
            cross[i * s + j] =
                (at(o->E, row, o->N + (int)i) + dot(M, o->A.x + (size_t)row * M, a)) /
                scale;
        }
    }
    f->given = given;
    f->cross = cross;
    f->features = o->A.x + (size_t)o->N * M;
    f->prior = prior;
    p.C = C;
    p.beta = beta;
    p.mean = array(n);
    p.var_near = array(n);
    p.var_far = array(n);
    CHECK(near_predicting_run(&p) == STATUS_OK);
    for (int i = 0; i < o->n; i++) {
        const struct beside b = beside_of(&half, o->N + i, NULL);
        CHECK_NEAR(p.mean[i], b.mean + times(transposed(b.r), rows->beta).x[0], 1e-9);
        CHECK_NEAR(p.var_near[i], b.left, 1e-9);
        CHECK_NEAR(p.var_far[i], times(transposed(b.r), times(rows->P_inverse, b.r)).x[0],
                   1e-9);
    }
}

/* With memory 0, the store has room for about 64 rows and their neighbours. */
static void field_of(const char *kernel, int N, int s, int weighted, int threads,
                     int block, size_t memory)
{
    enum { M = 4, COLUMNS = 2, NEW = 5 };
    const struct problem p =
        problem_new(kernel, (struct shape){M, N, COLUMNS, COLUMNS, 0, 0}, 0, weighted);
    double *X = array_random(NEW * COLUMNS, -2.0, 2.0);
    for (int j = 0; j < COLUMNS; j++) /* the first new row equals a row of the data */
        X[j * NEW] = p.X[j * N];
    int *rank = array_int((size_t)N);
    for (int i = 0; i < N; i++)
        rank[i] = (i * 7 + 3) % N; /* all different, because N is no multiple of 7 */
    const struct field_oracle o = oracle_of(&p, X, NEW, s);
    const struct rows_answer want = rows_wanted(&o, rank);

    struct near_posterior q = {
        .field = {.z = problem_points(&p), .rank = rank, .s = s, .few = s}};
    q.field.rows = q.field.targets = source_of(N, COLUMNS, p.X, p.y, p.scale);
    q.field.plan = plan_for(
        &(struct plan){.threads = threads, .memory = memory, .arena = &arrays}, N, block);
    q.field.u = array((size_t)N * s);
    q.field.near_rows = array_int((size_t)N * s);
    q.L = array(M * M);
    q.C = array(M * M);
    q.beta = array(M);
    q.d = array((size_t)N);
    CHECK(near_posterior_run(&q, p.jitter) == STATUS_OK);
    const struct matrix C = matrix_of(M, M, q.C);
    CHECK_ARRAY(M * M, times(C, transposed(C)).x, want.P.x, 1e-9);
    CHECK_ARRAY(M, q.beta, want.beta.x, 1e-9);
    CHECK_ARRAY((size_t)N, q.d, want.d, 1e-9);
    CHECK_NEAR(q.minus_log, want.minus_log, 1e-9);
    check_kept(&o, rank, &q.field);
    new_rows_of(&o, &want, &q.field, q.C, q.beta, X);
    given_of(&o, &want, &q.field, q.C, q.beta, X);
}

void group_near_field(void)
{
    const size_t taken = arrays_taken();
    for (int i = 0; i < n_kernels; i++)
        for (int s = 0; s <= 6; s += 3) {
            field_of(kernel_names[i], 23, s, i % 2, 1 + s % 2, 5, 1 << 20);
            arrays_release(taken);
        }
    field_of("matern32", 10, 10, 1, 2, 4, 1 << 20); /* all rows are neighbours */
    arrays_release(taken);
    field_of("matern12", 150, 1, 1, 2, 16, 0); /* waves, and a store that is emptied */
}
