#include "ffi.h"
#include "ffi_blocks.h"
#include "linalg.h"
#include "vecchia.h"

/* rows to a block: enough to be worth entering a parallel region on a busy machine, few enough that interrupts are let in */
#define ROWS 256

struct vecchia_slot {
    double *X, *y, *noise, *work;
};

struct vecchia_loop {
    struct plan plan;
    struct rows rows;
    struct kernel kernel;
    int columns; /* those up to the last that it reads are gathered */
    const double *weights, *times;
    const int *row,
        *neighbours; /* from 1; neighbours: s x |rows|, 0 where there is none */
    int s, slopes;
    double s2;
    struct vecchia_slot *slot;
    struct vecchia *sum; /* one a block, so that threads change nothing              */
    enum status *status;
};

/* row i (from 0) as the a-th of the n gathered */
static void gather(const struct vecchia_loop *v, int i, int a, int n,
                   struct vecchia_slot *to)
{
    const size_t N = (size_t)v->rows.N;
    for (size_t j = 0; j < (size_t)v->columns; j++)
        to->X[j * n + a] = v->rows.X[j * N + i];
    to->y[a] = v->rows.y[i];
    to->noise[a] = v->weights == NULL ? v->s2 : v->s2 / v->weights[i];
}

static void add_rows(void *context, int b, int slot)
{
    struct vecchia_loop *v = context;
    struct vecchia_slot *to = v->slot + slot;
    const int first = b * v->plan.block, left = v->plan.N - first;
    const int end = first + (left < v->plan.block ? left : v->plan.block);
    for (int t = first; t < end && v->status[b] == STATUS_OK; t++) {
        const int *near = v->neighbours + (size_t)t * v->s;
        int s = 0;
        while (s < v->s && near[s] > 0)
            s++;
        for (int a = 0; a < s; a++)
            gather(v, near[a] - 1, a, s + 1, to);
        gather(v, v->row[t] - 1, s, s + 1, to);
        v->status[b] = vecchia_add(&v->kernel, s, to->X, to->y, to->noise, v->times[t],
                                   v->slopes, to->work, v->sum + b);
    }
}

static const int *row_numbers(SEXP x, const char *argument, size_t length, int N,
                              int least)
{
    if (!Rf_isInteger(x) || (size_t)Rf_xlength(x) != length)
        Rf_error("internal: `%s` must have %lu integers", argument,
                 (unsigned long)length);
    const int *row = INTEGER_RO(x);
    for (size_t i = 0; i < length; i++)
        if (row[i] < least || row[i] > N)
            Rf_error("internal: `%s` must be rows of x", argument);
    return row;
}

SEXP ffi_vecchia(SEXP kernel, SEXP x, SEXP y, SEXP weights, SEXP s2, SEXP rows,
                 SEXP neighbours, SEXP times, SEXP slopes, SEXP control)
{
    static const char *const names[] = {"status", "value", "score", "information"};
    const struct step steps[] = {{add_rows, 0}};
    struct vecchia_loop v;
    v.kernel = arg_kernel(kernel);
    v.columns = kernel_columns(&v.kernel);
    v.s2 = arg_number(s2, "s2");
    v.slopes = arg_integer(slopes, "slopes");
    v.rows.X = arg_inputs(&v.kernel, x, "x", &v.rows.N, &v.rows.columns);
    v.rows.y = arg_vector(y, "y", (size_t)v.rows.N);
    v.rows.scale = NULL;
    v.weights = arg_vector_or_null(weights, "weights", (size_t)v.rows.N);
    const int count = (int)Rf_xlength(rows);
    v.row = row_numbers(rows, "rows", (size_t)count, v.rows.N, 1);
    if (!Rf_isMatrix(neighbours) || Rf_ncols(neighbours) != count)
        Rf_error("internal: `neighbours` must have a column for each of `rows`");
    v.s = Rf_nrows(neighbours);
    v.neighbours =
        row_numbers(neighbours, "neighbours", (size_t)v.s * count, v.rows.N, 0);
    v.times = arg_vector(times, "times", (size_t)count);
    v.plan = arg_plan(control, count);
    if (v.plan.block > ROWS) { /* small blocks: a sum each, added in their order */
        v.plan.block = ROWS;
        v.plan.n_blocks = (count + ROWS - 1) / ROWS;
    }

    const size_t n = (size_t)v.s + 1, blocks = (size_t)v.plan.n_blocks;
    v.slot = (struct vecchia_slot *)R_alloc((size_t)v.plan.threads, sizeof *v.slot);
    for (int i = 0; i < v.plan.threads; i++) {
        v.slot[i].X = (double *)R_alloc(n * v.columns, sizeof(double));
        v.slot[i].y = (double *)R_alloc(n, sizeof(double));
        v.slot[i].noise = (double *)R_alloc(n, sizeof(double));
        v.slot[i].work =
            (double *)R_alloc(vecchia_row_size(&v.kernel, v.s), sizeof(double));
    }
    v.sum = (struct vecchia *)R_alloc(blocks + 1, sizeof *v.sum);
    v.status = (enum status *)R_alloc(blocks + 1, sizeof *v.status);
    double *memory =
        (double *)R_alloc((blocks + 1) * vecchia_size(&v.kernel), sizeof(double));
    for (size_t b = 0; b <= blocks; b++) { /* the last is the whole */
        vecchia_init(&v.kernel, memory + b * vecchia_size(&v.kernel), v.sum + b);
        v.status[b] = STATUS_OK;
    }
    run_blocks(&v.plan, 1, steps, &v);

    struct vecchia *whole = v.sum + blocks;
    enum status status = STATUS_OK;
    for (size_t b = 0; b < blocks; b++) {
        if (status == STATUS_OK)
            status = v.status[b];
        vecchia_merge(v.sum + b, whole);
    }
    mirror_lower(whole->p, whole->information);
    SEXP result = PROTECT(new_list(4, names));
    SET_VECTOR_ELT(result, 0, Rf_ScalarInteger((int)status));
    SET_VECTOR_ELT(result, 1, Rf_ScalarReal(whole->value));
    SET_VECTOR_ELT(result, 2, Rf_allocVector(REALSXP, whole->p));
    SET_VECTOR_ELT(result, 3, Rf_allocMatrix(REALSXP, whole->p, whole->p));
    copy((size_t)whole->p, whole->score, REAL(VECTOR_ELT(result, 2)));
    copy((size_t)whole->p * whole->p, whole->information, REAL(VECTOR_ELT(result, 3)));
    UNPROTECT(1);
    return result;
}
