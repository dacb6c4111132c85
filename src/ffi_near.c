#include <math.h>
#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"
#include "near.h"
#include "neighbours.h"

/*
 * Targets, each beside its near rows: the training rows themselves with earlier rows (the sums
 * of the posterior) or new rows with any (predictions).
 *
 * They are taken in the order of a tree, in waves: find the neighbours of a wave; make A for
 * those of them that the store does not hold; then each target on its own.  While the store has
 * room for all rows A is made once; else it is emptied now and then, and since targets of a wave
 * lie together, so do their neighbours.
 */
#define WAVE      4096 /* targets in a wave, at most                                  */
#define FEW       64   /* targets whose neighbours the store has room for, at least   */
#define NEAR_ROWS 256  /* rows in a block, at most                                    */
#define PLAIN_M                                                                          \
    400 /* points up to which the BLAS is not better                         */
#define JOINT_POINTS 64 /* the same for points of a joint law                          */

struct store {
    int capacity, used;
    int *place;    /* [N] of a row in the store, -1: not there */
    int *row;      /* [capacity] from 0                        */
    double *A, *X; /* M x capacity, columns x capacity         */
};

struct near_slot {
    struct near near;
    double *work, *u, *r2, *X, *a, *R, *scale, *y;
    struct stats stats;
    double *Rt;          /* block x M                          */
    const double **rows; /* [M] its columns: R's rows          */
    double log_d;
    enum status status;
};

struct near_pass {
    struct plan plan; /* of a wave */
    struct rows rows;
    struct inducing z;
    struct tree tree;
    struct store store;
    int s, first_new, plain;
    const double *Lt, *Ct; /* transposed factors, where plain */
    double s2;
    const int *rank;   /* of the training rows; NULL: new rows */
    const int *target; /* NULL: targets as they come           */
    struct rows targets;
    int start; /* of the wave */
    int *near, *found;
    struct near_slot *slot;
    const double *beta, *C; /* of the posterior, where new rows are asked for */
    double *mean, *var_near, *var_far;
    double *kept_u, *kept_d; /* s x N, N: u and d of every training row, or NULL */
    int *kept_rows;          /* s x N, from 1; 0: there is none                   */
    double *keep_u, *keep_R; /* s x n, M x n of new rows as they come, where wanted */
    int *keep_near;          /* s x n, -1 where there are fewer                     */
};

static struct block wave_block(const struct near_pass *p, int b)
{
    const int start = b * p->plan.block, left = p->plan.N - start;
    struct block block = {0};
    block.n = left < p->plan.block ? left : p->plan.block;
    return block;
}

static int target_row(const struct near_pass *p, int i)
{
    return p->target == NULL ? i : p->target[i];
}

/* n rows of a matrix, by number */
static void gather(const struct rows *from, int n, const int *row, double *X)
{
    for (int j = 0; j < from->columns; j++)
        for (int i = 0; i < n; i++)
            X[(size_t)j * n + i] = from->X[(size_t)j * from->N + row[i]];
}

/* ---- a wave -------------------------------------------------------------------------------- */

static void find_near(void *context, int b, int slot)
{
    struct near_pass *p = context;
    struct near_slot *s = p->slot + slot;
    const int first = b * p->plan.block, n = wave_block(p, b).n;
    for (int i = first; i < first + n; i++) {
        const int row = target_row(p, p->start + i);
        tree_coordinates(&p->tree, p->targets.X + row, p->targets.N, s->u);
        p->found[i] = tree_nearest(&p->tree, s->u, p->s, p->rank == NULL ? -1 : row,
                                   p->rank == NULL ? 0 : p->rank[row], s->r2,
                                   p->near + (size_t)i * p->s);
    }
}

static void store_clear(struct store *store)
{
    for (int i = 0; i < store->used; i++)
        store->place[store->row[i]] = -1;
    store->used = 0;
}

static int store_want(struct store *store, int row)
{
    if (store->place[row] >= 0)
        return 1;
    if (store->used == store->capacity)
        return 0;
    store->place[row] = store->used;
    store->row[store->used++] = row;
    return 1;
}

/* places for all rows that the wave reads; 0 where there is no room for them */
static int want_wave(struct near_pass *p)
{
    for (int i = 0; i < p->plan.N; i++) {
        const int *near = p->near + (size_t)i * p->s;
        if (p->rank != NULL && !store_want(&p->store, target_row(p, p->start + i)))
            return 0;
        for (int j = 0; j < p->found[i]; j++)
            if (!store_want(&p->store, near[j]))
                return 0;
    }
    return 1;
}

/* A = L^{-1} K diag(scale), in place */
static void whiten(const struct near_pass *p, int n, const double *scale, double *A)
{
    if (!p->plain) {
        inducing_whiten(&p->z, n, scale, A, A);
        return;
    }
    plain_solve_lower(p->z.M, n, p->Lt, A);
    scale_columns(p->z.M, n, scale, A);
}

static void fill_kernels(void *context, int b, int slot)
{
    struct near_pass *p = context;
    const struct inducing *z = &p->z;
    const int n = wave_block(p, b).n, columns = p->rows.columns;
    const size_t place = (size_t)p->first_new + (size_t)b * p->plan.block;
    double *X = p->slot[slot].X, *kept = p->store.X + place * columns;
    gather(&p->rows, n, p->store.row + place, X);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < columns; j++)
            kept[(size_t)i * columns + j] = X[(size_t)j * n + i];
    kernel_cross(z->kernel, z->M, z->Z, z->M, n, X, n, p->store.A + place * z->M);
}

static void fill_whiten(void *context, int b, int slot)
{
    struct near_pass *p = context;
    const int n = wave_block(p, b).n;
    const size_t place = (size_t)p->first_new + (size_t)b * p->plan.block;
    double *A = p->store.A + place * p->z.M, *scale = p->slot[slot].scale;
    if (p->rows.scale != NULL)
        for (int i = 0; i < n; i++)
            scale[i] = p->rows.scale[p->store.row[place + i]];
    whiten(p, n, p->rows.scale == NULL ? NULL : scale, A);
}

static void fill_store(struct near_pass *p)
{
    const struct step steps[] = {{fill_kernels, 0}, {fill_whiten, !p->plain}};
    const struct plan wave = p->plan;
    p->first_new = p->store.used;
    if (!want_wave(p)) {
        store_clear(&p->store);
        p->first_new = 0;
        if (!want_wave(p))
            Rf_error("internal: no room for the rows of one wave");
    }
    p->plan.N = p->store.used - p->first_new;
    p->plan.n_blocks = (p->plan.N + p->plan.block - 1) / p->plan.block;
    run_blocks(&p->plan, 2, steps, p);
    p->plan = wave;
}

/* ---- targets ------------------------------------------------------------------------------- */

/* a = L^{-1} k(Z, x) where the store does not hold it */
static void target_kernels(void *context, int b, int slot)
{
    struct near_pass *p = context;
    struct near_slot *s = p->slot + slot;
    const struct inducing *z = &p->z;
    const int first = p->start + b * p->plan.block, n = wave_block(p, b).n;
    for (int i = 0; i < n; i++) {
        const int row = target_row(p, first + i);
        for (int j = 0; j < p->targets.columns; j++)
            s->X[(size_t)j * n + i] = p->targets.X[(size_t)j * p->targets.N + row];
        s->scale[i] = p->targets.scale == NULL ? 1.0 : p->targets.scale[row];
        s->y[i] = p->targets.y == NULL ? 0.0 : s->scale[i] * p->targets.y[row];
    }
    if (p->rank == NULL || p->s == 0)
        kernel_cross(z->kernel, z->M, z->Z, z->M, n, s->X, n, s->a);
}

static void target_whiten(void *context, int b, int slot)
{
    struct near_pass *p = context;
    struct near_slot *s = p->slot + slot;
    if (p->rank == NULL || p->s == 0)
        whiten(p, wave_block(p, b).n, s->scale, s->a);
}

/* the neighbours of target i of the wave, and itself, in near->X, scale, y and a */
static void collect(const struct near_pass *p, int i, int in_block, int n,
                    const struct near_slot *s, struct near *near)
{
    const int columns = near->columns, rows = near->s + 1;
    for (int j = 0; j < near->s; j++) {
        const int row = p->near[(size_t)i * p->s + j];
        const size_t place = (size_t)p->store.place[row];
        const double *x = p->store.X + place * columns;
        for (int c = 0; c < columns; c++)
            near->X[(size_t)c * rows + j] = x[c];
        near->scale[j] = p->rows.scale == NULL ? 1.0 : p->rows.scale[row];
        near->y[j] = near->scale[j] * p->rows.y[row];
        near->a[j] = p->store.A + place * p->z.M;
    }
    for (int c = 0; c < columns; c++)
        near->X[(size_t)c * rows + near->s] = s->X[(size_t)c * n + in_block];
    near->scale[near->s] = s->scale[in_block];
    if (p->rank == NULL || p->s == 0) {
        near->a[near->s] = s->a + (size_t)in_block * p->z.M;
    } else {
        const int row = target_row(p, p->start + i);
        near->a[near->s] = p->store.A + (size_t)p->store.place[row] * p->z.M;
    }
}

static void keep(struct near_pass *p, int i, int found, const double *u, double d)
{
    const size_t row = (size_t)target_row(p, p->start + i), s = (size_t)p->s;
    p->kept_d[row] = d;
    for (size_t j = 0; j < s; j++) {
        const int there = (int)j < found;
        p->kept_u[row * s + j] = there ? u[j] : 0.0;
        p->kept_rows[row * s + j] = there ? p->near[(size_t)i * s + j] + 1 : 0;
    }
}

static void keep_weights(const struct near_pass *p, const struct near_slot *s, int row,
                         int i, const double *r)
{
    const size_t start = (size_t)row * p->s;
    for (int j = 0; j < p->s; j++) {
        const int there = j < s->near.s;
        p->keep_near[start + j] = there ? p->near[(size_t)i * p->s + j] : -1;
        p->keep_u[start + j] = there ? s->u[j] * s->near.scale[j] : 0.0;
    }
    copy((size_t)p->z.M, r, p->keep_R + (size_t)row * p->z.M);
}

/* R = r of every target; y <- y - mean, scale <- left (training) or mean and left given back */
static void target_condition(void *context, int b, int slot)
{
    struct near_pass *p = context;
    struct near_slot *s = p->slot + slot;
    const int first = b * p->plan.block, n = wave_block(p, b).n;
    for (int i = 0; i < n; i++) {
        double mean, left;
        s->near.s = p->s == 0 ? 0 : p->found[first + i];
        collect(p, first + i, i, n, s, &s->near);
        const enum status status = near_condition(
            &s->near, s->work, s->u, s->R + (size_t)i * p->z.M, &mean, &left);
        if (status != STATUS_OK)
            s->status = status;
        if (p->mean != NULL) {
            const int row = target_row(p, p->start + first + i);
            p->mean[row] = mean;
            p->var_near[row] = left;
            if (p->keep_R != NULL)
                keep_weights(p, s, row, first + i, s->R + (size_t)i * p->z.M);
        } else {
            s->y[i] -= mean;
            s->scale[i] = left;
            if (p->kept_u != NULL)
                keep(p, first + i, s->near.s, s->u, left + p->s2);
        }
    }
}

/* a~ = r / sqrt(d),  y~ = (y - u'y_S) / sqrt(d),  d = left + s2:  G += a~ a~',  Ay += a~ y~ */
static void target_sums(void *context, int b, int slot)
{
    struct near_pass *p = context;
    struct near_slot *s = p->slot + slot;
    const int M = p->z.M, n = wave_block(p, b).n;
    for (int i = 0; i < n; i++) {
        const double d = s->scale[i] + p->s2;
        s->log_d += log(d);
        s->scale[i] = 1.0 / sqrt(d);
        s->y[i] *= s->scale[i];
    }
    scale_columns(M, n, s->scale, s->R);
    if (p->plain) {
        transpose_to(M, n, s->R, s->Rt);
        for (int m = 0; m < M; m++) {
            s->rows[m] = s->Rt + (size_t)m * n;
            s->stats.Ay[m] += dot((size_t)n, s->rows[m], s->y);
        }
        plain_add_AtA(n, M, 1.0, s->rows, s->stats.G);
    } else {
        add_A_At(M, n, s->R, s->stats.G);
        mult_Ax(M, n, 1.0, s->R, s->y, 1.0, s->stats.Ay);
    }
    s->stats.yy += sum_squares((size_t)n, s->y);
}

/* mean = u'y_S + r'beta,  var_far = |C^{-1} r|^2 */
static void target_predict(void *context, int b, int slot)
{
    struct near_pass *p = context;
    struct near_slot *s = p->slot + slot;
    const int first = p->start + b * p->plan.block, n = wave_block(p, b).n;
    const size_t M = (size_t)p->z.M;
    for (int i = 0; i < n; i++)
        p->mean[target_row(p, first + i)] += dot(M, s->R + M * i, p->beta);
    if (p->plain)
        plain_solve_lower(p->z.M, n, p->Ct, s->R);
    else
        solve_lower(p->z.M, n, p->C, s->R);
    for (int i = 0; i < n; i++) {
        const int row = target_row(p, first + i);
        p->var_far[row] = sum_squares(M, s->R + M * i);
    }
}

static void run_wave(struct near_pass *p, int start, int n)
{
    static const struct step find[] = {{find_near, 0}};
    const struct step steps[] = {
        {target_kernels, 0},
        {target_whiten, !p->plain},
        {target_condition, 0},
        {p->mean == NULL ? target_sums : target_predict, !p->plain}};
    p->start = start;
    p->plan.N = n;
    p->plan.n_blocks = (n + p->plan.block - 1) / p->plan.block;
    if (p->s > 0) {
        run_blocks(&p->plan, 1, find, p);
        fill_store(p);
    }
    run_blocks(&p->plan, 4, steps, p);
}

static double *doubles(size_t n)
{
    return (double *)R_alloc(n, sizeof(double));
}

static int least_of(double a, double b)
{
    return (int)(a < b ? a : b);
}

static void lay_out(struct near_pass *p, int n_targets)
{
    const size_t M = (size_t)p->z.M, s = (size_t)p->s, columns = (size_t)p->rows.columns;
    const double each = 8.0 * ((double)M + (double)columns), per_target = (double)s + 1.0;
    struct store *store = &p->store;
    int wave = p->s == 0 ? n_targets : least_of(n_targets, WAVE);
    store->used = store->capacity = 0;
    if (p->s > 0) {
        const int room =
            least_of(p->rows.N, fmax((double)p->plan.memory / each, per_target * FEW));
        store->capacity = least_of(room, per_target * n_targets);
        if (store->capacity < p->rows.N)
            wave = least_of(wave, store->capacity / (int)per_target);
        store->place = (int *)R_alloc((size_t)p->rows.N, sizeof(int));
        for (int i = 0; i < p->rows.N; i++)
            store->place[i] = -1;
        store->row = (int *)R_alloc((size_t)store->capacity, sizeof(int));
        store->A = doubles(M * (size_t)store->capacity);
        store->X = doubles(columns * (size_t)store->capacity);
        p->near = (int *)R_alloc(s * (size_t)wave, sizeof(int));
        p->found = (int *)R_alloc((size_t)wave, sizeof(int));
    }
    /* blocks that give every thread its part of a wave */
    const int share = wave / p->plan.threads + (wave % p->plan.threads > 0);
    p->plan.block = least_of(p->plan.block, fmin(NEAR_ROWS, share > 0 ? share : 1));
    p->plan.N = wave;
    const size_t n = (size_t)p->plan.block;
    p->slot =
        (struct near_slot *)R_alloc((size_t)p->plan.threads, sizeof(struct near_slot));
    for (int i = 0; i < p->plan.threads; i++) {
        struct near_slot *slot = p->slot + i;
        slot->near.kernel = p->z.kernel;
        slot->near.M = p->z.M;
        slot->near.columns = p->rows.columns;
        slot->near.s2 = p->s2;
        slot->near.X = doubles(near_rows_size(p->s, p->rows.columns));
        slot->near.scale = slot->near.X + (s + 1) * columns;
        slot->near.y = slot->near.scale + s + 1;
        slot->near.a = (const double **)R_alloc(s + 1, sizeof(double *));
        slot->work = doubles(near_size(p->s));
        slot->u = doubles(s + (size_t)p->z.kernel->d);
        slot->r2 = doubles(s);
        slot->X = doubles(n * columns);
        slot->a = p->rank == NULL || p->s == 0 ? doubles(M * n) : NULL;
        slot->R = doubles(M * n);
        slot->scale = doubles(n);
        slot->y = doubles(n);
        slot->log_d = 0.0;
        slot->status = STATUS_OK;
        slot->Rt = p->mean == NULL && p->plain ? doubles(M * n) : NULL;
        slot->rows = (const double **)R_alloc(M, sizeof(double *));
        if (p->mean == NULL)
            stats_init(p->z.M, 0, doubles(stats_size(p->z.M, 0)), &slot->stats);
    }
}

static const double *transposed(int M, const double *L)
{
    double *Lt = doubles((size_t)M * M);
    transpose_to(M, M, L, Lt);
    return Lt;
}

static void run_targets(struct near_pass *p, int n)
{
    p->plain = p->z.M <= PLAIN_M;
    if (p->plain) {
        p->plan.parallel_blocks = 1; /* nothing here calls the BLAS */
        p->Lt = transposed(p->z.M, p->z.L);
        p->Ct = p->mean == NULL ? NULL : transposed(p->z.M, p->C);
    }
    lay_out(p, n);
    const int wave = p->plan.N;
    for (int start = 0; start < n; start += wave)
        run_wave(p, start, n - start < wave ? n - start : wave);
}

static void build_tree(const struct kernel *k, const struct rows *rows, const int *rank,
                       int queries, struct tree *tree)
{
    double *kept = doubles(tree_doubles(rows->N, k->d));
    int *ints = (int *)R_alloc(tree_ints(rows->N), sizeof(int));
    const void *top = vmaxget();
    double *work = doubles(tree_work(rows->N));
    tree_build(k, rows->N, rows->X, rows->N, rank, queries, kept, ints, work, tree);
    vmaxset(top);
}

static enum status slots_status(const struct near_pass *p)
{
    for (int i = 0; i < p->plan.threads; i++)
        if (p->slot[i].status != STATUS_OK)
            return p->slot[i].status;
    return STATUS_OK;
}

/* ---- doors --------------------------------------------------------------------------------- */

static void arg_pass(const struct kernel *k, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s,
                     SEXP s2, SEXP control, int n, struct near_pass *p)
{
    p->z.kernel = k;
    p->z.Z = arg_matrix(z, "z", &p->z.M, &p->z.columns);
    p->rows.X = arg_matrix(x, "x", &p->rows.N, &p->rows.columns);
    p->rows.y = arg_vector(y, "y", (size_t)p->rows.N);
    p->rows.scale = arg_vector_or_null(scale, "scale", (size_t)p->rows.N);
    p->s = arg_integer(s, "s");
    if (p->s < 0 || p->z.columns != p->rows.columns)
        Rf_error("internal: `s` must be at least 0, and `z` have the columns of `x`");
    for (int j = 0; j < k->d; j++)
        if (k->column[j] < 0 || k->column[j] >= p->rows.columns)
            Rf_error("internal: the kernel reads a column that `x` has not");
    if (p->s > p->rows.N)
        p->s = p->rows.N;
    p->s2 = arg_number(s2, "s2");
    p->plan = plan_blocks(control, n);
    p->rank = p->target = NULL;
    p->mean = p->kept_u = p->kept_d = NULL;
    p->kept_rows = NULL;
    p->keep_u = p->keep_R = NULL;
    p->keep_near = NULL;
}

SEXP ffi_near(SEXP kernel, SEXP z, SEXP x, SEXP y, SEXP scale, SEXP s2, SEXP jitter_,
              SEXP most_jitter, SEXP s, SEXP rank, SEXP keep_rows, SEXP control)
{
    static const char *const names[] = {"status",    "jitter", "L", "C",   "beta",
                                        "minus_log", "u",      "d", "rows"};
    const struct kernel k = arg_kernel(kernel);
    struct near_pass p;
    double jitter = arg_number(jitter_, "jitter"), log_d = 0.0, minus_log = 0.0;
    int N = 0, columns;
    arg_matrix(x, "x", &N, &columns);
    arg_pass(&k, z, x, y, scale, s, s2, control, N, &p);
    const int M = p.z.M;
    p.targets = p.rows;
    if (TYPEOF(rank) != INTSXP || XLENGTH(rank) != N)
        Rf_error("internal: `rank` must be an integer for every row");
    p.rank = INTEGER_RO(rank);

    SEXP result = PROTECT(new_list(9, names));
    if (arg_integer(keep_rows, "keep")) {
        SET_VECTOR_ELT(result, 6, Rf_allocMatrix(REALSXP, p.s, N));
        SET_VECTOR_ELT(result, 7, Rf_allocVector(REALSXP, N));
        SET_VECTOR_ELT(result, 8, Rf_allocMatrix(INTSXP, p.s, N));
        p.kept_u = REAL(VECTOR_ELT(result, 6));
        p.kept_d = REAL(VECTOR_ELT(result, 7));
        p.kept_rows = INTEGER(VECTOR_ELT(result, 8));
    }
    SET_VECTOR_ELT(result, 2, Rf_allocMatrix(REALSXP, M, M));
    SET_VECTOR_ELT(result, 3, Rf_allocMatrix(REALSXP, M, M));
    SET_VECTOR_ELT(result, 4, Rf_allocVector(REALSXP, M));
    double *L = REAL(VECTOR_ELT(result, 2)), *C = REAL(VECTOR_ELT(result, 3)),
           *beta = REAL(VECTOR_ELT(result, 4));
    enum status status =
        inducing_ladder(&k, M, p.z.Z, arg_number(most_jitter, "most_jitter"),
                        doubles((size_t)M), &jitter, L);
    p.z.jitter = jitter;
    p.z.L = L;
    if (status == STATUS_OK) {
        if (p.s > 0) {
            build_tree(&k, &p.rows, p.rank, N, &p.tree);
            p.target = p.tree.row;
        }
        run_targets(&p, N);
        status = slots_status(&p);
    }
    if (status == STATUS_OK) {
        struct stats *sums = &p.slot[0].stats;
        for (int i = 0; i < p.plan.threads; i++) {
            log_d += p.slot[i].log_d;
            if (i > 0)
                stats_merge(&p.slot[i].stats, sums);
        }
        status = stats_finish(sums);
        if (status == STATUS_OK) /* C C' = I + G,  beta = (I + G)^{-1} Ay */
            status = posterior_factor(sums, 1.0, C, beta);
        minus_log =
            0.5 * (log_d + chol_logdet(M, C) + sums->yy - dot((size_t)M, sums->Ay, beta) +
                   N * log(2.0 * 3.14159265358979323846));
    }
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal(jitter));
    SET_VECTOR_ELT(result, 5, Rf_ScalarReal(minus_log));
    UNPROTECT(1);
    return result;
}

/* mean and both parts of the variance at new rows, into `result` from its element 1 on */
static enum status predict_new_rows(struct near_pass *p, const struct rows *new_rows,
                                    SEXP L, SEXP C, SEXP beta, SEXP result)
{
    struct tree order;
    if (new_rows->columns != p->rows.columns)
        Rf_error("internal: `x_new` must have the columns of `x`");
    p->targets = *new_rows;
    p->z.jitter = 0.0;
    p->z.L = arg_vector(L, "L", (size_t)p->z.M * p->z.M);
    p->C = arg_vector(C, "C", (size_t)p->z.M * p->z.M);
    p->beta = arg_vector(beta, "beta", (size_t)p->z.M);
    for (int i = 1; i < 4; i++)
        SET_VECTOR_ELT(result, i, Rf_allocVector(REALSXP, new_rows->N));
    p->mean = REAL(VECTOR_ELT(result, 1));
    p->var_near = REAL(VECTOR_ELT(result, 2));
    p->var_far = REAL(VECTOR_ELT(result, 3));
    if (p->s > 0) {
        build_tree(p->z.kernel, &p->rows, NULL, new_rows->N, &p->tree);
        build_tree(p->z.kernel, new_rows, NULL, new_rows->N, &order);
        p->target = order.row;
    }
    run_targets(p, new_rows->N);
    return slots_status(p);
}

SEXP ffi_near_predict(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP beta, SEXP x, SEXP y,
                      SEXP scale, SEXP s2, SEXP s, SEXP x_new, SEXP control)
{
    static const char *const names[] = {"status", "mean", "var_near", "var_far"};
    const struct kernel k = arg_kernel(kernel);
    struct near_pass p;
    struct rows new_rows = {0};
    new_rows.X = arg_matrix(x_new, "x_new", &new_rows.N, &new_rows.columns);
    arg_pass(&k, z, x, y, scale, s, s2, control, new_rows.N, &p);
    SEXP result = PROTECT(new_list(4, names));
    const enum status status = predict_new_rows(&p, &new_rows, L, C, beta, result);
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    UNPROTECT(1);
    return result;
}

/* ---- new rows together --------------------------------------------------------------------- */

struct joining {
    struct plan plan;
    struct joint joint;
    double **work, **sum;
};

static void joining_points(void *context, int b, int slot)
{
    struct joining *j = context;
    const int first = b * j->plan.block, left = j->joint.n_points - first;
    near_joint_add(&j->joint, first, left < j->plan.block ? left : j->plan.block,
                   j->work[slot], j->sum[slot]);
}

/* Every row of x that is near to a new one, then the new ones: the entries of W by point. */
static void joint_points(const struct near_pass *p, const struct rows *new_rows,
                         struct joint *joint)
{
    const size_t entries = (size_t)new_rows->N * ((size_t)p->s + 1);
    const int N = p->rows.N, n = new_rows->N, columns = p->rows.columns;
    int *place = (int *)R_alloc((size_t)N, sizeof(int)), used = 0;
    for (int i = 0; i < N; i++)
        place[i] = -1;
    for (size_t e = 0; e < (size_t)n * p->s; e++)
        if (p->keep_near[e] >= 0 && place[p->keep_near[e]] < 0)
            place[p->keep_near[e]] = used++;
    const size_t points = (size_t)used + n;
    double *X = doubles(points * columns), *noise = doubles(points),
           *weight = doubles(entries);
    int *start = (int *)R_alloc(points + 2, sizeof(int)),
        *column = (int *)R_alloc(entries, sizeof(int));
    for (int i = 0; i < N; i++) {
        if (place[i] < 0)
            continue;
        const double scale = p->rows.scale == NULL ? 1.0 : p->rows.scale[i];
        noise[place[i]] = p->s2 / (scale * scale);
        for (int c = 0; c < columns; c++)
            X[points * c + (size_t)place[i]] = p->rows.X[(size_t)c * N + i];
    }
    for (int i = 0; i < n; i++) {
        noise[used + i] = 0.0;
        for (int c = 0; c < columns; c++)
            X[points * c + (size_t)(used + i)] = new_rows->X[(size_t)c * n + i];
    }
    /* entries counted, then each put behind those of the points before it; start[l + 1]
     * moves up from the first to one beyond the last entry of point l */
    for (size_t l = 0; l < points + 2; l++)
        start[l] = 0;
    for (size_t e = 0; e < (size_t)n * p->s; e++)
        if (p->keep_near[e] >= 0)
            start[place[p->keep_near[e]] + 2]++;
    for (int i = 0; i < n; i++)
        start[used + i + 2]++;
    for (size_t l = 2; l < points + 2; l++)
        start[l] += start[l - 1];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= p->s; j++) {
            const size_t e = (size_t)i * p->s + j;
            if (j < p->s && p->keep_near[e] < 0)
                continue;
            const int l = j < p->s ? place[p->keep_near[e]] : used + i;
            const int at = start[l + 1]++;
            column[at] = i;
            weight[at] = j < p->s ? -p->keep_u[e] : 1.0;
        }
    joint->kernel = p->z.kernel;
    joint->n = n;
    joint->n_points = (int)points;
    joint->X = X;
    joint->noise = noise;
    joint->start = start;
    joint->column = column;
    joint->weight = weight;
}

/* covariance = r'(C C')^{-1} r~ - r'r~ + W'(K + noise)W */
static void join(struct near_pass *p, const struct rows *new_rows, double *covariance)
{
    const int n = new_rows->N, M = p->z.M;
    const size_t nn = (size_t)n * n;
    const struct step steps[] = {{joining_points, 0}};
    struct joining j;
    joint_points(p, new_rows, &j.joint);
    j.plan = p->plan;
    j.plan.N = j.joint.n_points;
    j.plan.block = least_of(JOINT_POINTS, j.plan.N / j.plan.threads + 1);
    j.plan.n_blocks = (j.plan.N + j.plan.block - 1) / j.plan.block;
    j.work = (double **)R_alloc((size_t)j.plan.threads, sizeof *j.work);
    j.sum = (double **)R_alloc((size_t)j.plan.threads, sizeof *j.sum);
    for (int i = 0; i < j.plan.threads; i++) {
        j.work[i] = doubles(near_joint_size(&j.joint, j.plan.block));
        j.sum[i] = i == 0 ? covariance : doubles(nn);
        fill(nn, 0.0, j.sum[i]);
    }
    run_blocks(&j.plan, 1, steps, &j);
    for (int i = 1; i < j.plan.threads; i++)
        add_scaled(nn, 1.0, j.sum[i], covariance);
    mult_AtB(n, M, n, -1.0, p->keep_R, p->keep_R, 1.0, covariance);
    solve_lower(M, n, p->C, p->keep_R);
    mult_AtB(n, M, n, 1.0, p->keep_R, p->keep_R, 1.0, covariance);
    for (int c = 0; c < n; c++) { /* symmetric, and the variances those of predictions */
        covariance[(size_t)c * n + c] = p->var_near[c] + p->var_far[c];
        for (int r = c + 1; r < n; r++) {
            double *low = covariance + (size_t)c * n + r,
                   *high = covariance + (size_t)r * n + c;
            *low = *high = 0.5 * (*low + *high);
        }
    }
}

SEXP ffi_near_covariance(SEXP kernel, SEXP z, SEXP L, SEXP C, SEXP beta, SEXP x, SEXP y,
                         SEXP scale, SEXP s2, SEXP s, SEXP x_new, SEXP control)
{
    static const char *const names[] = {"status", "mean", "var_near", "var_far",
                                        "covariance"};
    const struct kernel k = arg_kernel(kernel);
    struct near_pass p;
    struct rows new_rows = {0};
    new_rows.X = arg_matrix(x_new, "x_new", &new_rows.N, &new_rows.columns);
    arg_pass(&k, z, x, y, scale, s, s2, control, new_rows.N, &p);
    const size_t n = (size_t)new_rows.N;
    if ((double)n * (p.s + 1.0) > 2147483647.0)
        Rf_error("internal: too many rows for one covariance matrix");
    p.keep_u = doubles(n * (size_t)p.s);
    p.keep_near = (int *)R_alloc(n * (size_t)p.s, sizeof(int));
    p.keep_R = doubles(n * (size_t)p.z.M);
    SEXP result = PROTECT(new_list(5, names));
    SET_VECTOR_ELT(result, 4, Rf_allocMatrix(REALSXP, new_rows.N, new_rows.N));
    const enum status status = predict_new_rows(&p, &new_rows, L, C, beta, result);
    if (status == STATUS_OK)
        join(&p, &new_rows, REAL(VECTOR_ELT(result, 4)));
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    UNPROTECT(1);
    return result;
}
