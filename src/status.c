#include <stddef.h>
#include "status.h"

static const char *const sentences[] = {
    [STATUS_OK] = "all went well",
    [STATUS_KMM_NOT_PD] =
        "the kernel matrix of the inducing points is not positive definite in double precision: some inducing "
        "points (nearly) coincide, or the lengthscales are much longer than the distances between them",
    [STATUS_INNER_NOT_PD] =
        "the posterior precision matrix of the inducing variables is not positive definite in double precision: the "
        "noise variance (for a family, of working responses) is too small relative to the signal variance",
    [STATUS_EXACT_NOT_PD] =
        "the kernel matrix of the rows plus the noise is not positive definite in double precision: the noise "
        "variance is too small relative to the signal variance",
    [STATUS_NOT_FINITE] =
        "the sums over the rows are not finite: the hyperparameters are too extreme for the data"};

const char *status_sentence(enum status status)
{
    const size_t i = (size_t)status;
    return i < sizeof sentences / sizeof sentences[0] ? sentences[i] : "unknown status";
}
