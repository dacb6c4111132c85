#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include "args.h"
#include "linalg.h"

/* Returns the index of the element with this name, or -1 if the list has no such element. */
static R_xlen_t find(SEXP list, const char *name)
{
    SEXP names = Rf_getAttrib(list, R_NamesSymbol);
    if (TYPEOF(list) == VECSXP && names != R_NilValue)
        for (R_xlen_t i = 0; i < XLENGTH(list); i++)
            if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0)
                return i;
    return -1;
}

SEXP list_get(SEXP list, const char *name)
{
    const R_xlen_t at = find(list, name);
    if (at < 0)
        Rf_error("internal: a list without the element '%s'", name);
    return VECTOR_ELT(list, at);
}

void arg_check(int holds, const char *requirement)
{
    if (!holds)
        Rf_error("internal: %s", requirement);
}

double arg_number(SEXP x, const char *argument)
{
    if (TYPEOF(x) != REALSXP || XLENGTH(x) != 1)
        Rf_error("internal: `%s` must be one double", argument);
    return REAL_RO(x)[0];
}

int arg_integer(SEXP x, const char *argument)
{
    if (TYPEOF(x) != INTSXP || XLENGTH(x) != 1)
        Rf_error("internal: `%s` must be one integer", argument);
    return INTEGER_RO(x)[0];
}

const char *arg_string(SEXP x, const char *argument)
{
    if (TYPEOF(x) != STRSXP || XLENGTH(x) != 1)
        Rf_error("internal: `%s` must be one string", argument);
    return CHAR(STRING_ELT(x, 0));
}

const double *arg_matrix(SEXP x, const char *argument, int *rows, int *columns)
{
    SEXP dim = Rf_getAttrib(x, R_DimSymbol);
    if (TYPEOF(x) != REALSXP || TYPEOF(dim) != INTSXP || XLENGTH(dim) != 2)
        Rf_error("internal: `%s` must be a matrix of doubles", argument);
    *rows = INTEGER_RO(dim)[0];
    *columns = INTEGER_RO(dim)[1];
    return REAL_RO(x);
}

int arg_count(SEXP x, const char *argument)
{
    const int n = arg_integer(x, argument);
    if (n < 0)
        Rf_error("internal: `%s` must be at least 0", argument);
    return n;
}

const double *arg_inputs(const struct kernel *k, SEXP x, const char *name, int *n, int *d)
{
    const double *X = arg_matrix(x, name, n, d);
    if (kernel_columns(k) > *d)
        Rf_error("internal: the kernel reads a column that `%s` does not have", name);
    const size_t size = k->n_rotated + k->n_warped ? (size_t)*n * (size_t)*d : 0;
    return size ? kernel_inputs(k, *n, *d, X, alloc_doubles(size)) : X;
}

const double *arg_vector(SEXP x, const char *argument, size_t length)
{
    if (TYPEOF(x) != REALSXP || (size_t)XLENGTH(x) != length)
        Rf_error("internal: `%s` must have %.0f doubles", argument, (double)length);
    return REAL_RO(x);
}

const double *arg_vector_or_null(SEXP x, const char *argument, size_t length)
{
    return x == R_NilValue ? NULL : arg_vector(x, argument, length);
}

double list_number(SEXP list, const char *name)
{
    return arg_number(list_get(list, name), name);
}

const double *list_vector(SEXP list, const char *name, size_t length)
{
    return arg_vector(list_get(list, name), name, length);
}

const int *arg_indices(SEXP x, const char *argument, size_t length, int least, int most)
{
    if (TYPEOF(x) != INTSXP || (size_t)XLENGTH(x) != length)
        Rf_error("internal: `%s` must have %.0f integers", argument, (double)length);
    const int *from = INTEGER_RO(x);
    int *to = alloc_integers(length);
    for (size_t i = 0; i < length; i++) {
        if (from[i] < least || from[i] > most)
            Rf_error("internal: `%s` must be between %d and %d", argument, least, most);
        to[i] = from[i] - 1;
    }
    return to;
}

/* Reads a factor, except its parameters, from list(profile, columns, number, isotropic, power, correlation, table).
 * Columns count from 1. `number` is NULL, or has 2 for a column with level numbers and 1 for any other. */
static struct factor arg_factor(SEXP list)
{
    struct factor f = {0};
    SEXP columns = list_get(list, "columns"), table = list_get(list, "table"),
         number = list_get(list, "number");
    f.profile = profile_of(arg_string(list_get(list, "profile"), "profile"));
    arg_check(f.profile != NULL, "there is no such profile");
    f.d = (int)XLENGTH(columns);
    f.column = arg_indices(columns, "columns", (size_t)f.d, 1, INT_MAX);
    if (number != R_NilValue)
        f.number = arg_indices(number, "number", (size_t)f.d, 1, 2);
    f.isotropic = arg_integer(list_get(list, "isotropic"), "isotropic");
    f.power = arg_count(list_get(list, "power"), "power");
    f.n_parameters = factor_n_metric(&f) + f.profile->n_shape;
    if (factor_has_levels(&f)) {
        const int group = f.profile->metric == METRIC_GROUP, rows = factor_table_rows(&f);
        arg_check(rows > 0 && !(group && f.power > 1), "levels must have effects");
        f.levels = levels_named(arg_string(list_get(list, "correlation"), "correlation"));
        f.n_parameters = levels_parameters(f.levels, rows) + (group ? rows - 1 : 0);
        if (f.levels == LEVELS_GIVEN && !group)
            f.table = arg_vector(table, "table", (size_t)f.d * f.d);
    }
    if (f.profile->metric == METRIC_PRODUCT)
        f.table = arg_vector_or_null(table, "table", 2 * (size_t)f.d);
    return f;
}

/* Sets f->parameter to the factor's part of `values`. If f compares levels or groups, computes its table from them. */
static void give_parameters(struct factor *f, const double *values)
{
    if (f->at < 0)
        return;
    f->parameter = values + f->at;
    if (f->levels != LEVELS_GIVEN || f->profile->metric == METRIC_GROUP) {
        const size_t size = (size_t)factor_table_rows(f) * factor_table_rows(f);
        factor_fill_table(f, alloc_doubles(size),
                          alloc_doubles(((size_t)f->n_parameters + 1) * size));
    }
}

/* Reads list(factors, terms, values, rotation, warp). `values` has all parameters. A term lists the numbers of its
 * factors, from 1. */
struct kernel arg_kernel(SEXP list)
{
    struct kernel k;
    SEXP factors = list_get(list, "factors"), terms = list_get(list, "terms");
    const int n_factors = (int)XLENGTH(factors), n_terms = (int)XLENGTH(terms);
    struct factor *factor = (struct factor *)R_alloc((size_t)n_factors, sizeof *factor);
    struct term *term = (struct term *)R_alloc((size_t)n_terms, sizeof *term);
    for (int f = 0; f < n_factors; f++)
        factor[f] = arg_factor(VECTOR_ELT(factors, f));
    for (int t = 0; t < n_terms; t++) {
        SEXP of = VECTOR_ELT(terms, t);
        term[t].n_factors = (int)XLENGTH(of);
        term[t].factor = arg_indices(of, "factors", (size_t)XLENGTH(of), 1, n_factors);
    }
    kernel_places(n_factors, factor, n_terms, term, &k);
    const double *values = list_vector(list, "values", (size_t)k.n_theta);
    for (int f = 0; f < n_factors; f++)
        give_parameters(factor + f, values);
    for (int t = 0; t < n_terms; t++)
        term[t].variance = values[term[t].at];
    SEXP by = list_get(list, "rotation"), warp = list_get(list, "warp");
    k.n_rotated = (int)sqrt((double)Rf_xlength(by));
    k.rotation = arg_vector_or_null(by, "rotation", (size_t)k.n_rotated * k.n_rotated);
    k.n_warped = (int)(Rf_xlength(warp) / (2 * WARP_KNOTS));
    k.warp = arg_vector_or_null(warp, "warp", 2 * WARP_KNOTS * (size_t)k.n_warped);
    return k;
}

/* Returns a copy of x that lives until .Call returns. */
static void *keep(const void *x, size_t size)
{
    return memcpy(R_alloc(1, (int)size), x, size);
}

struct lowrank *arg_lowrank(SEXP list, const struct kernel *kernel)
{
    struct lowrank aux = {.kernel = kernel};
    int rows, columns;
    aux.p = arg_integer(list_get(list, "p"), "p");
    arg_check(aux.p == 0 || aux.p == 1, "`p` must be 0 or 1");
    aux.U = arg_inputs(kernel, list_get(list, "U"), "U", &aux.n_u, &columns);
    aux.W = arg_matrix(list_get(list, "W"), "W", &rows, &aux.q);
    arg_check(rows == aux.n_u && aux.q > 0,
              "`W` must have the rows of `U`, and a column");
    aux.sign = list_vector(list, "sign", (size_t)aux.q);
    return keep(&aux, sizeof aux);
}

const struct model *arg_model(SEXP list)
{
    const struct kernel kernel = arg_kernel(list_get(list, "kernel"));
    const struct model model = {keep(&kernel, sizeof kernel), list_number(list, "noise")};
    return keep(&model, sizeof model);
}

struct source *arg_new_rows(const struct model *model, SEXP x)
{
    struct source rows = {0};
    rows.X = arg_inputs(model->kernel, x, "x", &rows.N, &rows.columns);
    rows.ldx = rows.N;
    return keep(&rows, sizeof rows);
}

struct source *arg_rows(const struct model *model, SEXP list)
{
    struct source *rows = arg_new_rows(model, list_get(list, "x"));
    const size_t N = (size_t)rows->N;
    rows->y = arg_vector_or_null(list_get(list, "y"), "y", N);
    rows->scale = arg_vector_or_null(list_get(list, "scale"), "scale", N);
    return rows;
}

struct source *arg_data(const struct model *model, SEXP list)
{
    struct source *rows = arg_rows(model, list);
    arg_check(rows->y != NULL, "`y` must be there");
    return rows;
}

struct inducing arg_points(SEXP list)
{
    struct inducing p = {.model = arg_model(list), .jitter = list_number(list, "jitter")};
    p.Z = arg_inputs(p.model->kernel, list_get(list, "z"), "z", &p.M, &p.columns);
    return p;
}

struct posterior *arg_posterior(SEXP list)
{
    struct posterior p = {.z = arg_points(list)};
    const size_t M = (size_t)p.z.M;
    p.z.L = list_vector(list, "L", M * M);
    p.C = list_vector(list, "C", M * M);
    p.beta = list_vector(list, "beta", M);
    return keep(&p, sizeof p);
}

struct plan arg_plan(SEXP control, int N)
{
    struct plan plan = {.interrupt = R_CheckUserInterrupt,
                        .arena = scratch_arena(R_NilValue)};
    plan.threads = arg_integer(list_get(control, "threads"), "threads");
    const int block = arg_integer(list_get(control, "block"), "block");
    const double memory = list_number(control, "memory");
    arg_check(plan.threads > 0 && block > 0, "`threads` and `block` must be at least 1");
    arg_check(memory >= 0.0, "`memory` must be at least 0");
    plan.memory = memory < (double)(SIZE_MAX / 2) ? (size_t)memory : SIZE_MAX / 2;
#ifndef _OPENMP
    plan.threads = 1;
#endif
    return plan_for(&plan, N, block);
}

struct pass pass_over(const struct source *rows, const struct inducing *z, SEXP control)
{
    return (struct pass){.plan = arg_plan(control, rows->N), .rows = rows, .z = z};
}

struct pass pass_at(SEXP x, const struct inducing *z, SEXP control)
{
    return pass_over(arg_new_rows(z->model, x), z, control);
}

struct stats arg_sums(SEXP list, int M, int q)
{
    struct stats s = {.M = M, .q = q};
    s.G = list_vector(list, "G", (size_t)M * M);
    s.Ay = list_vector(list, "Ay", (size_t)M);
    s.AW = q > 0 ? list_vector(list, "AW", (size_t)M * q) : NULL;
    s.yy = list_number(list, "yy");
    s.k_sum = list_number(list, "k_sum");
    s.t = list_number(list, "t");
    s.n = list_number(list, "n");
    return s;
}

double *alloc_doubles(size_t n)
{
    const size_t line = 8 * sizeof(double), at = (size_t)R_alloc(n + 8, sizeof(double));
    return (double *)((at + line - 1) / line * line);
}

int *alloc_integers(size_t n)
{
    return (int *)R_alloc(n > 0 ? n : 1, sizeof(int));
}

struct arena *scratch_arena(SEXP scratch)
{
    struct arena arena = {.more = alloc_doubles};
    if (TYPEOF(scratch) == REALSXP) {
        arena.base = REAL(scratch);
        arena.size = (size_t)XLENGTH(scratch);
    }
    return keep(&arena, sizeof arena);
}

enum { most_elements = 32 };

SEXP pack(const char *optional, ...)
{
    SEXP list = PROTECT(Rf_allocVector(VECSXP, most_elements)),
         names = PROTECT(Rf_allocVector(STRSXP, most_elements));
    va_list more;
    Rf_setAttrib(list, R_NamesSymbol, names);
    va_start(more, optional);
    for (int i = 0; optional != NULL; i++, optional = va_arg(more, const char *))
        SET_STRING_ELT(names, i, Rf_mkChar(optional));
    va_end(more);
    UNPROTECT(2);
    return list;
}

SEXP packed(SEXP list)
{
    SEXP result = PROTECT(Rf_lengthgets(list, (R_len_t)find(list, "")));
    UNPROTECT(2);
    return result;
}

static SEXP put(SEXP list, const char *name, SEXP x)
{
    const R_xlen_t found = find(list, name), at = found < 0 ? find(list, "") : found;
    PROTECT(x);
    SET_VECTOR_ELT(list, at, x);
    SET_STRING_ELT(Rf_getAttrib(list, R_NamesSymbol), at, Rf_mkChar(name));
    UNPROTECT(1);
    return x;
}

double *pack_matrix(SEXP list, const char *name, int rows, int columns)
{
    return REAL(put(list, name, Rf_allocMatrix(REALSXP, rows, columns)));
}

double *pack_vector(SEXP list, const char *name, int n)
{
    return REAL(put(list, name, Rf_allocVector(REALSXP, n)));
}

int *pack_integer_matrix(SEXP list, const char *name, int rows, int columns)
{
    return INTEGER(put(list, name, Rf_allocMatrix(INTSXP, rows, columns)));
}

void pack_number(SEXP list, const char *name, double x)
{
    *pack_vector(list, name, 1) = x;
}

void pack_status(SEXP list, enum status status)
{
    put(list, "status", Rf_ScalarInteger((int)status));
}

enum status pack_value(SEXP list, enum status status, const char *name, const double *x)
{
    pack_status(list, status);
    pack_number(list, name, status == STATUS_OK ? *x : R_PosInf);
    return status;
}

void pack_factors(SEXP list, int M, double **L, double **C, double **beta)
{
    *L = pack_matrix(list, "L", M, M);
    *C = pack_matrix(list, "C", M, M);
    *beta = pack_vector(list, "beta", M);
}

void pack_sums(SEXP result, const struct stats *s)
{
    const size_t M = (size_t)s->M;
    copy(M * M, s->G, pack_matrix(result, "G", s->M, s->M));
    copy(M, s->Ay, pack_vector(result, "Ay", s->M));
    pack_number(result, "yy", s->yy);
    pack_number(result, "k_sum", s->k_sum);
    pack_number(result, "t", s->t > 0.0 ? s->t : 0.0);
    pack_number(result, "log_weights", s->log_weights);
}
