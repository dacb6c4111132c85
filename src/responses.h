#pragma once

/*
 * The table of likelihoods of a response y given the latent f.  With log p up to terms without f,
 * and its derivatives
 *
 *     l(f),  g = dl/df,  W = -d2l/df2,  l3 = d3l/df3.
 *
 * W may be negative for Student's t only, which therefore has `majorant`, a weight w with
 *
 *     l(f + t) >= l(f) + g t - w t^2 / 2      for every t,
 *
 * so that steps by it never lower the sum of l's.  log p is analytic in a strip of half width `strip` about the
 * real line, times sqrt(shape[0]) shape[1] (for Student's t sqrt(nu) times the scale, for intervals the
 * scale).  If the width is infinite, averages over a normal f of variance v have the closed form
 * `average`, which for v = 0 takes the place of `at`.
 */

struct site_value {
    double l, g, W, l3;
};

/* A response.  `size` is the number of trials (binomial), theta (negative binomial), the shape (gamma) or the upper end
 * of an interval whose lower end is y; 1 for other likelihoods. */
struct observed {
    double y, size;
    const double *shape; /* further parameters, see struct sites */
};

struct response {
    const char *name;
    struct site_value (*at)(double f, struct observed o); /* NULL: by `average` */
    double (*majorant)(double f, struct observed o);      /* NULL: log-concave */
    double strip;
    struct site_value (*average)(double f, double v,
                                 struct observed o); /* NULL: by quadrature */
    int shapes; /* number of elements of `shape`; -1: a program (program.h) */
};

/* Returns the likelihood with a name ("logit", "gamma", ...), or NULL. */
const struct response *response_named(const char *name);

/* Rows of one likelihood: l and its derivatives are multiplied by weight, f has offset added. */
struct sites {
    const struct response *response;
    const double *y, *offset;    /* [N]         */
    const double *size, *weight; /* [N] or NULL */
    /* student: degrees of freedom, scale; tweedie: phi, p; intervals: 1, scale; or NULL */
    const double *shape;
};
/* Returns l, g, W and l3 of row i at f + offset. */
struct site_value sites_at(const struct sites *s, int i, double f);
double sites_majorant(const struct sites *s, int i, double f);
/* Returns averages of l, g, W over N(f, v); l3 is an estimate of the error of the average of l. */
struct site_value sites_average(const struct sites *s, int i, double f, double v);
