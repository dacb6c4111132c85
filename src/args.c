#include <string.h>
#include "args.h"

SEXP list_get(SEXP list, const char *name)
{
    SEXP names = Rf_getAttrib(list, R_NamesSymbol);
    if (TYPEOF(list) == VECSXP && names != R_NilValue)
        for (R_xlen_t i = 0; i < XLENGTH(list); i++)
            if (strcmp(CHAR(STRING_ELT(names, i)), name) == 0)
                return VECTOR_ELT(list, i);
    Rf_error("internal: a list without the element '%s'", name);
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

const double *arg_inputs(const struct kernel *k, SEXP x, const char *argument, int *rows,
                         int *columns)
{
    const double *X = arg_matrix(x, argument, rows, columns);
    for (int j = 0; j < k->d; j++)
        if (k->column[j] < 0 || k->column[j] >= *columns)
            Rf_error("internal: the kernel reads a column that `%s` does not have",
                     argument);
    return X;
}

struct block arg_block(const struct kernel *k, SEXP x, const char *argument, int *columns)
{
    struct block block = {0};
    block.X = arg_inputs(k, x, argument, &block.n, columns);
    block.ldx = block.n;
    return block;
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

struct kernel arg_kernel(SEXP list)
{
    struct kernel k;
    SEXP profile = list_get(list, "profile"), columns = list_get(list, "columns");
    if (TYPEOF(profile) != STRSXP || XLENGTH(profile) != 1)
        Rf_error("internal: `profile` must be one string");
    k.profile = kernel_profile(CHAR(STRING_ELT(profile, 0)));
    if (k.profile == NULL)
        Rf_error("internal: no kernel profile '%s'", CHAR(STRING_ELT(profile, 0)));
    if (TYPEOF(columns) != INTSXP)
        Rf_error("internal: `columns` must be integer");
    k.d = (int)XLENGTH(columns);
    k.column = INTEGER_RO(columns);
    k.lengthscale = arg_vector(list_get(list, "lengthscale"), "lengthscale", (size_t)k.d);
    k.variance = arg_number(list_get(list, "variance"), "variance");
    return k;
}

struct lowrank arg_lowrank(SEXP list, const struct kernel *kernel)
{
    struct lowrank nu;
    int rows;
    nu.kernel = kernel;
    nu.p = arg_integer(list_get(list, "p"), "p");
    if (nu.p != 0 && nu.p != 1)
        Rf_error("internal: `p` must be 0 or 1");
    nu.U = arg_inputs(kernel, list_get(list, "U"), "U", &nu.n_u, &nu.columns);
    nu.W = arg_matrix(list_get(list, "W"), "W", &rows, &nu.q);
    if (rows != nu.n_u || nu.q < 1)
        Rf_error("internal: `W` must have a row for every row of `U`, and a column");
    nu.sign = arg_vector(list_get(list, "sign"), "sign", (size_t)nu.q);
    return nu;
}

double *arena_take(struct arena *arena, size_t n)
{
    double *piece = arena->base == NULL ? NULL : arena->base + arena->used;
    arena->used += (n + 7) / 8 * 8; /* pieces of whole cache lines */
    return piece;
}

SEXP new_list(int n, const char *const *names)
{
    SEXP list = PROTECT(Rf_allocVector(VECSXP, n)), labels = Rf_allocVector(STRSXP, n);
    Rf_setAttrib(list, R_NamesSymbol, labels);
    for (int i = 0; i < n; i++)
        SET_STRING_ELT(labels, i, Rf_mkChar(names[i]));
    UNPROTECT(1);
    return list;
}

struct posterior arg_posterior(const struct kernel *k, SEXP z, SEXP L, SEXP C, SEXP s2)
{
    struct posterior p;
    p.z.kernel = k;
    p.z.Z = arg_inputs(k, z, "z", &p.z.M, &p.z.columns);
    p.z.jitter = 0.0;
    p.z.L = arg_vector(L, "L", (size_t)p.z.M * p.z.M);
    p.C = arg_vector(C, "C", (size_t)p.z.M * p.z.M);
    p.s2 = arg_number(s2, "s2");
    p.beta = NULL;
    return p;
}
