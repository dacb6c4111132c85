#pragma once

/* A numerical routine returns its outcome as a status. Only functions that R calls raise errors. */
enum status {
    STATUS_OK = 0,
    STATUS_KMM_NOT_PD,   /* k(Z, Z) + jitter diag k(z, z): no Cholesky factor */
    STATUS_INNER_NOT_PD, /* s2 I + A A' (stats.h) or a Hessian H has no Cholesky factor */
    STATUS_EXACT_NOT_PD, /* k(X, X) + noise has no Cholesky factor */
    STATUS_NOT_FINITE    /* a sum over the rows is NaN or infinite */
};

const char *status_sentence(enum status status);
