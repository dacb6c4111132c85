#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include "ffi.h"

/* clang-format off */
#define DOOR(name, n) {"ffi_" #name, (DL_FUNC)(void (*)(void)) & ffi_##name, n}

static const R_CallMethodDef doors[] = {
    DOOR(kernel_matrix, 4),
    DOOR(kernel_diagonal, 2),
    DOOR(kernel_slopes, 4),
    DOOR(slope_variance, 3),
    DOOR(evaluate, 6),
    DOOR(sums, 4),
    DOOR(objective, 4),
    DOOR(gradient, 6),
    DOOR(posterior_of_sums, 2),
    DOOR(pf_constant, 4),
    DOOR(pf_divergence, 4),
    DOOR(lowrank_rows, 4),
    DOOR(vecchia, 9),
    DOOR(posterior, 5),
    DOOR(predict, 3),
    DOOR(covariance, 3),
    DOOR(effect_sums, 5),
    DOOR(eliminate, 6),
    DOOR(effect_solve, 6),
    DOOR(effect_predict, 6),
    DOOR(integrated, 9),
    DOOR(near_effects, 5),
    DOOR(level_products, 4),
    DOOR(factor, 3),
    DOOR(laplace, 7),
    DOOR(softmax, 7),
    DOOR(softmax_at, 6),
    DOOR(forms, 4),
    DOOR(paths, 5),
    DOOR(sites, 2),
    DOOR(neighbours, 7),
    DOOR(near, 7),
    DOOR(near_predict, 7),
    DOOR(near_covariance, 5),
    DOOR(select, 4),
    DOOR(select_guided, 4),
    DOOR(norms, 6),
    DOOR(cross, 4),
    DOOR(certify, 5),
    DOOR(certify_features, 5),
    DOOR(certify_kriged, 5),
    DOOR(kriging, 8),
    DOOR(decorrelate, 5),
    DOOR(kernel_matvecs, 6),
    DOOR(kernel_cross_matvec, 5),
    DOOR(response, 4),
    DOOR(exact, 4),
    DOOR(exact_evidence, 4),
    DOOR(exact_predict, 3),
    DOOR(exact_covariance, 2),
    DOOR(row_features, 2),
    DOOR(blas_threads, 1),
    DOOR(linalg_own, 1),
    DOOR(status, 1),
    {NULL, NULL, 0},
};
/* clang-format on */

void attribute_visible R_init_pfdtc(DllInfo *dll)
{
    R_registerRoutines(dll, NULL, doors, NULL, NULL);
    R_useDynamicSymbols(dll, FALSE);
    R_forceSymbols(dll, TRUE);
}
