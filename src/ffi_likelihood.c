#include "ffi.h"
#include "likelihood.h"
#include "linalg.h"
#include "neighbours.h"

SEXP ffi_vecchia(SEXP model_, SEXP rows_, SEXP weights, SEXP targets, SEXP neighbours,
                 SEXP times, SEXP slopes, SEXP control)
{
    const struct model model = arg_model(model_);
    const struct source rows = arg_data(&model, rows_);
    struct likelihood l = {
        .model = &model, .rows = &rows, .count = (int)XLENGTH(targets)};
    struct vecchia whole;
    l.weights = arg_vector_or_null(weights, "weights", (size_t)rows.N);
    l.row = arg_indices(targets, "rows", 1, rows.N);
    if (!Rf_isMatrix(neighbours) || Rf_ncols(neighbours) != l.count)
        Rf_error("internal: `neighbours` must have a column for each of `rows`");
    l.s = Rf_nrows(neighbours);
    l.neighbours = arg_indices(neighbours, "neighbours", 0, rows.N);
    l.times = arg_vector(times, "times", (size_t)l.count);
    l.slopes = arg_integer(slopes, "slopes");
    l.pass.plan = arg_plan(control, l.count);
    LAY_OUT(likelihood_open, &l);
    SEXP result = PROTECT(pack("status", "value", "score", "information", NULL));
    pack_status(result, likelihood_run(&l, &whole));
    const size_t p = (size_t)whole.p;
    pack_number(result, "value", whole.value);
    copy(p, whole.score, pack_vector(result, "score", whole.p));
    copy(p * p, whole.information, pack_matrix(result, "information", whole.p, whole.p));
    UNPROTECT(1);
    return result;
}

struct search {
    const struct model *model;
    struct tree tree;
    struct pass pass;
    int n, with_rank; /* rows of the tree */
};

static void search_open(struct search *s, struct arena *arena)
{
    tree_open(&s->tree, s->model->kernel, s->n, s->with_rank, arena);
    pass_open(&s->pass, arena);
}

SEXP ffi_neighbours(SEXP model_, SEXP x, SEXP s_, SEXP query, SEXP query_rows, SEXP rank,
                    SEXP control)
{
    const struct model model = arg_model(model_);
    const struct source rows = arg_new_rows(&model, x);
    const int s = arg_count(s_, "s"), by_row = query_rows != R_NilValue;
    struct source queries = by_row ? rows : arg_new_rows(&model, query);
    struct finding find = {.s = s};
    if (queries.columns != rows.columns)
        Rf_error("internal: `query` must have the columns of `x`");
    if (by_row) {
        queries.order = find.row = arg_indices(query_rows, "rows", 1, rows.N);
        queries.N = (int)XLENGTH(query_rows);
    }
    if (rank != R_NilValue && XLENGTH(rank) != rows.N)
        Rf_error("internal: `rank` must be an integer for every row of `x`");
    find.rank =
        by_row && rank != R_NilValue ? arg_indices(rank, "rank", 1, rows.N) : NULL;
    struct search search = {.model = &model, .n = rows.N, .with_rank = find.rank != NULL};
    search.pass = (struct pass){.plan = arg_plan(control, queries.N), .rows = &queries};
    SEXP near = PROTECT(Rf_allocMatrix(INTSXP, s, queries.N));
    find.near = INTEGER(near);
    find.tree = &search.tree;
    LAY_OUT(search_open, &search);
    tree_build(&search.tree, model.kernel, &rows, find.rank, queries.N);
    const struct sink sink = finding_sink(&find);
    run_pass(&search.pass, 1, &sink);
    UNPROTECT(1);
    return near;
}
