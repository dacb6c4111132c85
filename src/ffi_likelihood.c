#include <limits.h>
#include "ffi.h"
#include "likelihood.h"
#include "linalg.h"
#include "neighbours.h"

struct likelihood arg_likelihood(SEXP model, SEXP rows, SEXP weights, SEXP noise_basis,
                                 SEXP targets, SEXP neighbours, SEXP slopes, SEXP control)
{
    int n;
    struct likelihood l = {.model = arg_model(model), .count = (int)XLENGTH(targets)};
    l.rows = arg_data(l.model, rows);
    l.weights = arg_vector_or_null(weights, "weights", (size_t)l.rows->N);
    l.b = arg_matrix(noise_basis, "noise_basis", &n, &l.q);
    arg_check(n == l.rows->N, "`noise_basis` must have a row for each of the data");
    l.row = arg_indices(targets, "targets", (size_t)l.count, 1, l.rows->N);
    arg_check(Rf_isMatrix(neighbours), "`neighbours` must be a matrix");
    l.s = Rf_nrows(neighbours);
    l.neighbours =
        arg_indices(neighbours, "neighbours", (size_t)l.s * l.count, 0, l.rows->N);
    l.slopes = arg_integer(slopes, "slopes");
    l.pass.plan = arg_plan(control, l.count);
    return l;
}

void pack_vecchia(SEXP result, const struct vecchia *whole)
{
    const size_t p = (size_t)whole->p;
    copy(p, whole->score, pack_vector(result, "score", whole->p));
    copy(p * p, whole->information,
         pack_matrix(result, "information", whole->p, whole->p));
}

/* Returns list(status, value, score, information, residual, variance) of the Vecchia likelihood. value is the sum of
 * times_i log p(y_i | responses of its neighbours) over the rows i in `targets`. With slopes, score is its gradient in
 * the log kernel parameters, log s2 and the coefficients of noise_basis. information is then the expected information,
 * from a quarter of the terms if slopes = 2. Without slopes, residual is y_i minus its conditional mean, and variance
 * its conditional variance. neighbours is s x length(targets), with numbers of rows, and 0 behind the last. */
SEXP ffi_vecchia(SEXP model, SEXP rows, SEXP weights, SEXP noise_basis, SEXP targets,
                 SEXP neighbours, SEXP times, SEXP slopes, SEXP control)
{
    struct likelihood l = arg_likelihood(model, rows, weights, noise_basis, targets,
                                         neighbours, slopes, control);
    struct vecchia whole;
    l.times = arg_vector(times, "times", (size_t)l.count);
    SEXP result = PROTECT(pack(NULL));
    if (!l.slopes) {
        l.u = arena_take(l.pass.plan.arena, ((size_t)l.s + 1) * l.count);
        l.d = pack_vector(result, "variance", l.count);
        l.r = pack_vector(result, "residual", l.count);
    }
    pack_status(result, likelihood_run(&l, &whole));
    pack_number(result, "value", whole.value);
    pack_vecchia(result, &whole);
    return packed(result);
}

/* Returns b'V b for each row b of B. */
SEXP ffi_row_forms(SEXP B_, SEXP V_)
{
    int n, q;
    const double *B = arg_matrix(B_, "B", &n, &q),
                 *V = arg_vector(V_, "V", (size_t)q * q);
    struct arena arena = {.more = alloc_doubles};
    const struct sparse b = sparse_rows(n, q, B, &arena);
    SEXP forms = PROTECT(Rf_allocVector(REALSXP, n));
    for (int i = 0; i < n; i++)
        REAL(forms)[i] = sparse_form(&b, i, V);
    UNPROTECT(1);
    return forms;
}

void arg_neighbours(SEXP s, int n, int *few, int *most)
{
    arg_check(TYPEOF(s) == INTSXP && XLENGTH(s) > 0 && XLENGTH(s) < 3,
              "`s` must be one or two integers");
    const int *v = INTEGER_RO(s), last = v[XLENGTH(s) - 1];
    arg_check(v[0] >= 0 && last >= v[0], "`s` must be at least 0 and not decrease");
    *few = v[0] < n ? v[0] : n;
    *most = min_int(last, n);
}

/* Returns the rows of x with the numbers `query_rows` or, if `query_rows` is NULL, the rows of `query`. */
static struct source arg_queries(const struct model *model, const struct source *rows,
                                 SEXP query, SEXP query_rows)
{
    struct source queries = *rows;
    if (query_rows == R_NilValue)
        return *arg_new_rows(model, query);
    queries.N = (int)XLENGTH(query_rows);
    queries.order = arg_indices(query_rows, "rows", (size_t)queries.N, 1, rows->N);
    return queries;
}

/* Returns the numbers of the s rows of x nearest to each row of `query`, s x nrow(query), then zeros. If query_rows is
 * not NULL, the queries are these rows of x. Their neighbours are other rows, of lower rank if `rank` is given. */
SEXP ffi_neighbours(SEXP model_, SEXP x, SEXP s_, SEXP query, SEXP query_rows, SEXP rank,
                    SEXP control)
{
    const struct model *model = arg_model(model_);
    const struct source *rows = arg_new_rows(model, x),
                        queries = arg_queries(model, rows, query, query_rows);
    struct finding find = {.row = queries.order};
    arg_neighbours(s_, INT_MAX, &find.few, &find.s);
    arg_check(queries.columns == rows->columns, "`query` must have the columns of `x`");
    if (find.row != NULL && rank != R_NilValue)
        find.rank = arg_indices(rank, "rank", (size_t)rows->N, 1, rows->N);
    struct tree tree = {.kernel = model->kernel, .n = rows->N};
    struct pass pass = pass_over(&queries, NULL, control);
    tree.with_ranks = find.rank != NULL;
    tree_build(&tree, rows, find.rank, queries.N, pass.plan.arena);
    find.tree = &tree;
    SEXP near = PROTECT(Rf_allocMatrix(INTSXP, find.s, queries.N));
    find.near = INTEGER(near);
    pass_run(&pass, finding_sink(&find));
    UNPROTECT(1);
    return near;
}
