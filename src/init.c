#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include "ffi.h"

/* clang-format off */
#define DOOR(name, n) {"ffi_" #name, (DL_FUNC)(void (*)(void)) & ffi_##name, n}

static const R_CallMethodDef doors[] = {
    DOOR(kernel_matrix, 4),
    DOOR(evaluate, 7),
    DOOR(sums, 5),
    DOOR(objective, 5),
    DOOR(gradient, 7),
    DOOR(posterior_of_sums, 3),
    DOOR(pf_constant, 4),
    DOOR(pf_divergence, 5),
    DOOR(lowrank_rows, 4),
    DOOR(vecchia, 9),
    DOOR(posterior, 6),
    DOOR(predict, 5),
    DOOR(covariance, 5),
    DOOR(laplace, 8),
    DOOR(forms, 6),
    DOOR(paths, 7),
    DOOR(sites, 2),
    DOOR(neighbours, 7),
    DOOR(near, 8),
    DOOR(near_predict, 7),
    DOOR(near_covariance, 7),
    DOOR(select, 4),
    DOOR(select_guided, 4),
    DOOR(norms, 8),
    DOOR(cross, 6),
    DOOR(certify, 7),
    DOOR(certify_features, 7),
    DOOR(certify_kriged, 7),
    DOOR(kriging, 10),
    DOOR(decorrelate, 5),
    DOOR(kernel_matvecs, 6),
    DOOR(kernel_cross_matvec, 5),
    DOOR(response, 6),
    DOOR(exact, 4),
    DOOR(exact_evidence, 4),
    DOOR(exact_predict, 5),
    DOOR(exact_covariance, 4),
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
