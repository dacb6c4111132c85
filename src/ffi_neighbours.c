#include "ffi.h"
#include "ffi_blocks.h"
#include "neighbours.h"

struct finding {
    struct plan plan;
    struct rows rows;
    struct tree tree;
    int s, *near;
    const int *query_row, *rank; /* each NULL where it says nothing */
    double **work;
};

static void finding_rows(void *context, int b, int slot)
{
    struct finding *f = context;
    const int start = b * f->plan.block, left = f->plan.N - start;
    const int n = left < f->plan.block ? left : f->plan.block;
    double *u = f->work[slot], *r2 = u + f->tree.d;
    for (int i = start; i < start + n; i++) {
        const int self = f->query_row == NULL ? -1 : f->query_row[i] - 1;
        const int below = self < 0 || f->rank == NULL ? 0 : f->rank[self];
        int *near = f->near + (size_t)i * f->s, found;
        tree_coordinates(&f->tree, f->rows.X + (self < 0 ? i : self), f->rows.N, u);
        found = tree_nearest(&f->tree, u, f->s, self, below, r2, near);
        for (int j = 0; j < f->s; j++)
            near[j] = j < found ? near[j] + 1 : 0;
    }
}

static const int *arg_integers_or_null(SEXP x, const char *argument, R_xlen_t length,
                                       int least, int most)
{
    if (x == R_NilValue)
        return NULL;
    if (TYPEOF(x) != INTSXP || (length >= 0 && XLENGTH(x) != length))
        Rf_error("internal: `%s` must be integer, of the right length", argument);
    for (R_xlen_t i = 0; i < XLENGTH(x); i++)
        if (INTEGER_RO(x)[i] < least || INTEGER_RO(x)[i] > most)
            Rf_error("internal: `%s` must be from %d to %d", argument, least, most);
    return INTEGER_RO(x);
}

SEXP ffi_neighbours(SEXP kernel, SEXP x, SEXP s, SEXP query, SEXP query_rows, SEXP rank,
                    SEXP control)
{
    const struct kernel k = arg_kernel(kernel);
    struct finding f;
    int n, columns;
    const double *X = arg_matrix(x, "x", &n, &columns);
    f.s = arg_integer(s, "s");
    if (f.s < 0)
        Rf_error("internal: `s` must be at least 0");
    f.query_row = arg_integers_or_null(query_rows, "rows", -1, 1, n);
    f.rank = arg_integers_or_null(rank, "rank", n, 1, n);
    int n_query = 0, query_columns = columns;
    f.rows.X = X;
    f.rows.N = n;
    if (f.query_row == NULL) {
        f.rows.X = arg_matrix(query, "query", &f.rows.N, &query_columns);
        n_query = f.rows.N;
        f.rank = NULL;
    } else {
        n_query = (int)XLENGTH(query_rows);
    }
    if (query_columns != columns)
        Rf_error("internal: `query` must have the columns of `x`");
    if (kernel_columns(&k) > columns)
        Rf_error("internal: the kernel reads column %d of %d", kernel_columns(&k),
                 columns);
    const int d = kernel_n_coordinates(&k);
    f.plan = arg_plan(control, n_query);
    double *doubles = (double *)R_alloc(tree_doubles(n, d), sizeof(double));
    double *work = (double *)R_alloc(tree_work(n), sizeof(double));
    int *ints = (int *)R_alloc(tree_ints(n), sizeof(int));
    tree_build(&k, n, X, n, f.rank, n_query, doubles, ints, work, &f.tree);
    f.work = (double **)R_alloc((size_t)f.plan.threads, sizeof *f.work);
    for (int i = 0; i < f.plan.threads; i++)
        f.work[i] = (double *)R_alloc((size_t)d + f.s, sizeof(double));
    SEXP near = PROTECT(Rf_allocMatrix(INTSXP, f.s, n_query));
    const struct step steps[] = {{finding_rows, 0}};
    f.near = INTEGER(near);
    run_blocks(&f.plan, 1, steps, &f);
    UNPROTECT(1);
    return near;
}
