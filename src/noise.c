#include <math.h>
#include <string.h>
#include "noise.h"

/* FITC: row n has the weight w s2 / (s2 + w E_nn). */
static void fitc(const struct site *site, const struct block *b, const double *left,
                 double *y, double *scale)
{
    for (int i = 0; i < b->n; i++) {
        const double w = weight_of(b->scale, i);
        y[i] = b->y[i];
        scale[i] = sqrt(w * site->s2 / (site->s2 + w * left[i]));
    }
}

static const struct {
    const char *name;
    site_working *working;
} sites[] = {{"fitc", fitc}};

site_working *site_named(const char *name)
{
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++)
        if (strcmp(sites[i].name, name) == 0)
            return sites[i].working;
    return NULL;
}
