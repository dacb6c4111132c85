#include "status.h"

const char *status_sentence(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return "all went well";
    case STATUS_KMM_NOT_PD:
        return "the kernel matrix of the inducing points is not positive definite in double "
               "precision: some inducing points (nearly) coincide, or the lengthscales are "
               "much longer than the distances between them";
    case STATUS_INNER_NOT_PD:
        return "the matrix noise * I + A A' is not positive definite in double precision: the "
               "noise variance is too small relative to the signal variance";
    case STATUS_EXACT_NOT_PD:
        return "the kernel matrix of the rows plus the noise is not positive definite in "
               "double precision: the noise variance is too small relative to the signal variance";
    case STATUS_NOT_FINITE:
        return "the sums over the rows are not finite: the hyperparameters are too extreme "
               "for the data";
    }
    return "unknown status";
}
