#include <math.h>
#include "near_field.h"
#include "linalg.h"

#define WAVE      4096 /* largest number of targets in a wave */
#define FEW       64 /* the store has room for the neighbours of at least this many targets */
#define NEAR_ROWS 256 /* largest number of rows in a block */

/* ---- the store, which keeps A = L^{-1} k(Z, x) and the inputs of some rows x ----------------- */

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

int field_row(const struct near_field *f, int i)
{
    return f->wave.order == NULL ? f->start + i : f->wave.order[i];
}

/* Reserves places in f->store, which keeps L^{-1} k(Z, x) of rows x, for the neighbours of a wave (the target rows that
 * are processed together). If target rows are rows of the data, reserves theirs too. Returns 0 if the store is full. */
static int want_wave(struct near_field *f)
{
    for (int i = 0; i < f->n; i++) {
        const int *near = f->near + (size_t)i * f->s;
        if (f->rank != NULL && !store_want(&f->store, field_row(f, i)))
            return 0;
        for (int j = 0; j < f->s && near[j] > 0; j++)
            if (!store_want(&f->store, near[j] - 1))
                return 0;
    }
    return 1;
}

static void storing_add(const void *self, const struct visit *v)
{
    const struct near_field *f = self;
    const struct block *b = &v->block;
    const size_t columns = (size_t)kernel_columns(f->z.model->kernel), M = (size_t)f->z.M,
                 place = (size_t)(f->store.first_new + b->first);
    double *X = f->store.X + place * columns;
    copy(M * b->n, v->A, f->store.A + place * M);
    for (int i = 0; i < b->n; i++)
        for (size_t c = 0; c < columns; c++)
            X[(size_t)i * columns + c] = b->X[c * b->ldx + i];
}

/* Makes a pass read the n rows whose numbers are in `order`. */
static void aim(struct pass *p, struct source *rows, const int *order, int n)
{
    rows->order = order;
    rows->N = n;
    p->plan.N = n;
    p->plan.n_blocks = (n + p->plan.block - 1) / p->plan.block;
}

static void fill_store(struct near_field *f)
{
    struct store *store = &f->store;
    store->first_new = store->used;
    if (!want_wave(f)) {
        store_clear(store);
        store->first_new = 0;
        want_wave(f);
    }
    aim(&f->fill, &f->stored, store->row + store->first_new,
        store->used - store->first_new);
    pass_run(&f->fill, row_sink(f, storing_add, 0, 0));
}

/* ---- conditioning f at a target row on its neighbours ---------------------------------------- */

/* Returns 1 if f->store keeps L^{-1} k(Z, x) of target rows x: if they are rows of the data, and have neighbours. */
static int is_stored(const struct near_field *f)
{
    return f->rank != NULL && f->s > 0;
}

/* Returns the covariances [M] of f at target row i with L^{-1} f(Z), from f->features, f->store or v->A. */
static const double *features_of(const struct near_field *f, const struct visit *v, int i)
{
    const size_t M = (size_t)f->z.M, row = (size_t)field_row(f, v->block.first + i);
    if (f->features != NULL)
        return f->features + M * row;
    return is_stored(f) ? f->store.A + M * (size_t)f->store.place[row] : v->A + M * i;
}

struct field_scratch field_scratch(const struct near_field *f, int n, double *work)
{
    const size_t M = (size_t)f->z.M, rows = (size_t)f->s + 1;
    const int columns = kernel_columns(f->z.model->kernel);
    struct field_scratch r = {.R = work};
    r.near.z = &f->z;
    r.near.columns = columns;
    r.mean = r.R + M * n;
    r.left = r.mean + n;
    r.y = r.left + n;
    r.near.X = r.y + n;
    r.near.scale = r.near.X + rows * columns;
    r.near.y = r.near.scale + rows;
    r.near.a = (const double **)(void *)(r.near.y + rows);
    r.u = r.near.y + 2 * rows;
    r.work = r.u + f->s;
    return r;
}

/* Copies target row i of the block and its neighbours to `near`. `found` has the neighbours' numbers from 1, then 0. */
static void collect(const struct near_field *f, const struct visit *v, int i,
                    const int *found, struct near *near)
{
    const struct block *b = &v->block;
    const int columns = near->columns;
    int s = 0;
    while (s < f->s && found[s] > 0)
        s++;
    near->s = s;
    for (int j = 0; j < s; j++) {
        const int row = found[j] - 1;
        const size_t place = (size_t)f->store.place[row];
        const double *x = f->store.X + place * columns;
        for (int c = 0; c < columns; c++)
            near->X[(size_t)c * (s + 1) + j] = x[c];
        near->scale[j] = or_one(f->rows.scale, row);
        near->y[j] = near->scale[j] * f->rows.y[row];
        near->a[j] = f->store.A + place * f->z.M;
    }
    for (int c = 0; c < columns; c++)
        near->X[(size_t)c * (s + 1) + s] = b->X[(size_t)c * b->ldx + i];
    near->scale[s] = or_one(b->scale, i);
    near->a[s] = features_of(f, v, i);
    if (f->cross != NULL) {
        const size_t row = (size_t)field_row(f, b->first + i);
        near->cross = f->cross + row * f->s;
        near->prior = f->prior[row];
    }
}

static void keep(const struct near_field *f, size_t row, const struct field_scratch *r,
                 const int *found, const double *R)
{
    const size_t s = (size_t)f->s;
    if (f->u != NULL)
        for (size_t j = 0; j < s; j++) {
            const int there = (int)j < r->near.s;
            f->u[row * s + j] = there ? r->u[j] : 0.0;
            f->near_rows[row * s + j] = there ? found[j] : 0;
        }
    if (f->R != NULL)
        copy((size_t)f->z.M, R, f->R + row * f->z.M);
}

int field_condition(const struct near_field *f, const struct visit *v,
                    struct field_scratch *r)
{
    int failures = 0;
    for (int i = 0; i < v->block.n; i++) {
        const int at = v->block.first + i, *found = f->near + (size_t)at * f->s;
        double *R = r->R + (size_t)i * f->z.M;
        collect(f, v, i, found, &r->near);
        failures += near_condition(&r->near, r->work, r->u, R, r->mean + i,
                                   r->left + i) != STATUS_OK;
        keep(f, (size_t)field_row(f, at), r, found, R);
    }
    return failures;
}

/* ---- waves: sets of target rows that are processed together ---------------------------------- */

/* Allocates f->store, to keep L^{-1} k(Z, x) of rows x. Returns for how many target rows it can keep all neighbours. */
static int store_open(struct near_field *f)
{
    struct arena *arena = f->plan.arena;
    const size_t columns = (size_t)kernel_columns(f->z.model->kernel), M = (size_t)f->z.M;
    const double each = 8.0 * (double)(M + columns), per_target = f->s + 1.0;
    struct store *store = &f->store;
    int wave = min_int(f->targets.N, WAVE);
    const int space =
        (int)fmin(f->rows.N, fmax((double)f->plan.memory / each, per_target * FEW));
    store->capacity = (int)fmin(space, per_target * f->targets.N);
    if (store->capacity < f->rows.N)
        wave = min_int(wave, store->capacity / (int)per_target);
    store->place = arena_ints(arena, (size_t)f->rows.N);
    store->row = arena_ints(arena, (size_t)store->capacity);
    store->A = arena_take(arena, M * (size_t)store->capacity);
    store->X = arena_take(arena, columns * (size_t)store->capacity);
    return wave;
}

static void open_pass(struct pass *p, const struct plan *plan, const struct source *rows,
                      const struct inducing *z)
{
    *p = (struct pass){.plan = *plan, .rows = rows, .z = z, .goes_on = 1};
    pass_open(p);
}

static void field_open(struct near_field *f)
{
    struct arena *arena = f->plan.arena;
    int n = f->targets.N;
    f->wave = f->targets;
    f->stored = f->rows;
    if (f->s > 0) {
        const struct kernel *k = f->z.model->kernel;
        f->tree =
            (struct tree){.kernel = k, .n = f->rows.N, .with_ranks = f->rank != NULL};
        f->order = (struct tree){.kernel = k, .n = f->rank != NULL ? 0 : n};
        n = store_open(f);
        f->near = arena_ints(arena, (size_t)n * f->s);
        f->wave.order = f->stored.order = &f->start; /* not NULL, so rows are copied */
    }
    f->finding = (struct finding){&f->tree, f->s, f->few, NULL, f->rank, f->near};
    const int share = n / f->plan.threads + (n % f->plan.threads > 0);
    struct plan wave = plan_for(
        &f->plan, n, min_int(f->plan.block, min_int(NEAR_ROWS, share > 1 ? share : 1)));
    /* plan_for() allows a thread for each block of target rows. The pass that fills f->store may have more blocks. */
    wave.threads = f->plan.threads;
    f->most = n;
    if (f->s > 0) {
        open_pass(&f->find, &wave, &f->wave, NULL);
        open_pass(&f->fill, &wave, &f->stored, &f->z);
    }
    open_pass(&f->each, &wave, &f->wave,
              is_stored(f) || f->features != NULL ? NULL : &f->z);
}

static const int *make_trees(struct near_field *f)
{
    const int n = f->targets.N;
    if (f->s == 0)
        return NULL;
    tree_build(&f->tree, &f->rows, f->rank, n, f->plan.arena);
    if (f->rank != NULL)
        return f->tree.row;
    tree_build(&f->order, &f->targets, NULL, n, f->plan.arena);
    return f->order.row;
}

static void find_wave(struct near_field *f, const int *wave)
{
    const size_t s = (size_t)f->s;
    aim(&f->find, &f->wave, wave, f->n);
    if (f->given == NULL) {
        f->finding.row = f->rank == NULL ? NULL : wave;
        pass_run(&f->find, finding_sink(&f->finding));
        return;
    }
    for (int i = 0; i < f->n; i++) {
        const int *from = f->given + s * field_row(f, i);
        for (size_t j = 0; j < s; j++)
            f->near[s * i + j] = from[j] + 1;
    }
}

void field_run(struct near_field *f, struct sink sink)
{
    field_open(f);
    const int *order = make_trees(f), n = f->targets.N;
    sink.per_row = (size_t)f->z.M + 3;
    sink.more = near_size(f->s) + 2 * (size_t)f->s + 1 +
                near_rows_size(f->s, kernel_columns(f->z.model->kernel));
    fill(sink.n_sums, 0.0, sink.sums);
    f->store.used = 0;
    for (int i = 0; f->s > 0 && i < f->rows.N; i++)
        f->store.place[i] = -1;
    for (f->start = 0; f->start < n; f->start += f->n) {
        const int *wave = order == NULL ? NULL : order + f->start;
        f->n = min_int(n - f->start, f->most);
        if (f->s > 0) {
            find_wave(f, wave);
            fill_store(f);
        }
        aim(&f->each, &f->wave, wave, f->n);
        pass_run(&f->each, sink);
    }
}
