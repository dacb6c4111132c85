#include <math.h>
#include "ffi_near_pass.h"
#include "linalg.h"

#define WAVE 4096 /* targets in a wave, at most                                      */
#define FEW  64   /* targets whose neighbours the store has room for, at least       */
#define NEAR_ROWS                                                                        \
    256 /* rows in a block, at most                                        */

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

/* A = L^{-1} K diag(scale) of what the store has been asked for */
static void fill_block(void *context, int b, int slot)
{
    struct near_pass *p = context;
    const struct inducing *z = &p->z;
    const int n = wave_block(p, b).n, columns = p->rows.columns;
    const size_t place = (size_t)p->first_new + (size_t)b * p->plan.block;
    double *X = p->slot[slot].X, *kept = p->store.X + place * columns,
           *A = p->store.A + place * z->M, *scale = p->slot[slot].scale;
    gather(&p->rows, n, p->store.row + place, X);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < columns; j++)
            kept[(size_t)i * columns + j] = X[(size_t)j * n + i];
    kernel_cross(z->model->kernel, z->M, z->Z, z->M, n, X, n, A);
    if (p->rows.scale != NULL)
        for (int i = 0; i < n; i++)
            scale[i] = p->rows.scale[p->store.row[place + i]];
    inducing_whiten(z, n, p->rows.scale == NULL ? NULL : scale, A, A);
}

static void fill_store(struct near_pass *p)
{
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
    run_blocks(&p->plan, fill_block, p);
    p->plan = wave;
}

/* ---- targets ------------------------------------------------------------------------------- */

/* a = L^{-1} k(Z, x) where the store does not hold it */
static void target_read(const struct near_pass *p, int b, struct near_slot *s)
{
    const struct inducing *z = &p->z;
    const int first = p->start + b * p->plan.block, n = wave_block(p, b).n;
    for (int i = 0; i < n; i++) {
        const int row = target_row(p, first + i);
        for (int j = 0; j < p->targets.columns; j++)
            s->X[(size_t)j * n + i] = p->targets.X[(size_t)j * p->targets.N + row];
        s->scale[i] = p->targets.scale == NULL ? 1.0 : p->targets.scale[row];
        s->y[i] = p->targets.y == NULL ? 0.0 : s->scale[i] * p->targets.y[row];
    }
    if (p->rank != NULL && p->s > 0)
        return;
    kernel_cross(z->model->kernel, z->M, z->Z, z->M, n, s->X, n, s->a);
    inducing_whiten(z, n, s->scale, s->a, s->a);
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
static void target_condition(struct near_pass *p, int b, struct near_slot *s)
{
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
static void target_sums(const struct near_pass *p, int b, struct near_slot *s)
{
    const int M = p->z.M, n = wave_block(p, b).n;
    double *G = s->sums, *Ay = G + (size_t)M * M, *yy = Ay + M;
    for (int i = 0; i < n; i++) {
        const double d = s->scale[i] + p->s2;
        s->log_d += log(d);
        s->scale[i] = 1.0 / sqrt(d);
        s->y[i] *= s->scale[i];
    }
    scale_columns(M, n, s->scale, s->R);
    add_A_At(M, n, s->R, G);
    mult_Ax(M, n, 1.0, s->R, s->y, 1.0, Ay);
    *yy += sum_squares((size_t)n, s->y);
}

/* mean = u'y_S + r'beta,  var_far = |C^{-1} r|^2 */
static void target_predict(const struct near_pass *p, int b, struct near_slot *s)
{
    const int first = p->start + b * p->plan.block, n = wave_block(p, b).n;
    const size_t M = (size_t)p->z.M;
    for (int i = 0; i < n; i++)
        p->mean[target_row(p, first + i)] += dot(M, s->R + M * i, p->beta);
    solve_lower(p->z.M, n, p->C, s->R);
    for (int i = 0; i < n; i++) {
        const int row = target_row(p, first + i);
        p->var_far[row] = sum_squares(M, s->R + M * i);
    }
}

static void target_block(void *context, int b, int slot)
{
    struct near_pass *p = context;
    struct near_slot *s = p->slot + slot;
    target_read(p, b, s);
    target_condition(p, b, s);
    if (p->mean == NULL)
        target_sums(p, b, s);
    else
        target_predict(p, b, s);
}

static void run_wave(struct near_pass *p, int start, int n)
{
    p->start = start;
    p->plan.N = n;
    p->plan.n_blocks = (n + p->plan.block - 1) / p->plan.block;
    if (p->s > 0) {
        run_blocks(&p->plan, find_near, p);
        fill_store(p);
    }
    run_blocks(&p->plan, target_block, p);
}

double *doubles(size_t n)
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
        slot->near.kernel = p->z.model->kernel;
        slot->near.M = p->z.M;
        slot->near.columns = p->rows.columns;
        slot->near.s2 = p->s2;
        slot->near.X = doubles(near_rows_size(p->s, p->rows.columns));
        slot->near.scale = slot->near.X + (s + 1) * columns;
        slot->near.y = slot->near.scale + s + 1;
        slot->near.a = (const double **)R_alloc(s + 1, sizeof(double *));
        slot->work = doubles(near_size(p->s));
        slot->u = doubles(s + (size_t)kernel_n_coordinates(p->z.model->kernel));
        slot->r2 = doubles(s);
        slot->X = doubles(n * columns);
        slot->a = p->rank == NULL || p->s == 0 ? doubles(M * n) : NULL;
        slot->R = doubles(M * n);
        slot->scale = doubles(n);
        slot->y = doubles(n);
        slot->log_d = 0.0;
        slot->status = STATUS_OK;
        if (p->mean == NULL)
            fill(stats_size(p->z.M, 0), 0.0, slot->sums = doubles(stats_size(p->z.M, 0)));
    }
}

void run_targets(struct near_pass *p, int n)
{
    lay_out(p, n);
    const int wave = p->plan.N;
    for (int start = 0; start < n; start += wave)
        run_wave(p, start, n - start < wave ? n - start : wave);
}

void build_tree(const struct kernel *k, const struct rows *rows, const int *rank,
                int queries, struct tree *tree)
{
    double *kept = doubles(tree_doubles(rows->N, kernel_n_coordinates(k)));
    int *ints = (int *)R_alloc(tree_ints(rows->N), sizeof(int));
    const void *top = vmaxget();
    double *work = doubles(tree_work(rows->N));
    tree_build(k, rows->N, rows->X, rows->N, rank, queries, kept, ints, work, tree);
    vmaxset(top);
}

enum status slots_status(const struct near_pass *p)
{
    for (int i = 0; i < p->plan.threads; i++)
        if (p->slot[i].status != STATUS_OK)
            return p->slot[i].status;
    return STATUS_OK;
}
