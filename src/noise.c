#include <math.h>
#include "noise.h"

/* a weight of w s2 / (s2 + w E_nn) */
void site_fitc(const struct site *site, const struct block *b, const double *left,
               double *y, double *scale)
{
    for (int i = 0; i < b->n; i++) {
        const double w = b->scale == NULL ? 1.0 : b->scale[i] * b->scale[i];
        y[i] = b->y[i];
        scale[i] = sqrt(w * site->s2 / (site->s2 + w * left[i]));
    }
}
