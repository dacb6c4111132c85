#ifndef PFDTC_BLOCK_H
#define PFDTC_BLOCK_H

/* Some rows of the data, in place. */
struct block {
    int n;
    const double *X; /* n rows, leading dimension ldx            */
    int ldx;
    const double *y;     /* [n]                                      */
    const double *scale; /* [n] or NULL: square roots of the weights */
};

/* ys (n doubles) = scale * y */
void block_response(const struct block *b, double *ys);

#endif
