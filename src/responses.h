#pragma once

/* A likelihood is a density p(y | f) of a response y given the latent f. With l(f) = log p(y | f) up to terms without
 * f,
 *
 *     g = dl/df,  W = -d2l/df2,  l3 = d3l/df3.
 *
 * If W may be negative, as for Student's t, there is a weight w with
 *
 *     l(f + t) >= l(f) + g t - w t^2 / 2      for every t,
 *
 * so Newton steps with w for W never lower the log posterior density of f. (A user's likelihood has w from the user.)
 *
 * l is analytic where |Im f| < strip or, given shape parameters, |Im f| < strip sqrt(shape[0]) shape[1]. This bound
 * determines the number of quadrature nodes. If it is infinite, average(f, v, o) is the closed form of the averages
 * over N(f, v), and average(f, 0, o) replaces at(f, o). */

struct site_value {
    double l, g, W, l3;
};

/* An observed response.  `size` is the number of trials (binomial), theta (negative binomial), the shape (gamma) or
 * the upper end of an interval with the lower end y.  For other likelihoods it is 1. */
struct observed {
    double y, size;
    const double *shape; /* shape parameters, see struct sites */
};

struct response {
    const char *name;
    struct site_value (*at)(double f, struct observed o); /* NULL if `average` is used */
    double (*majorant)(double f, struct observed o);      /* NULL if l is concave */
    double strip;
    /* NULL if averages are computed by quadrature */
    struct site_value (*average)(double f, double v, struct observed o);
    int shapes; /* number of shape parameters; -1 if `shape` has programs (program.h) */
};

/* Returns the likelihood with a name ("logit", "gamma", ...), or NULL. */
const struct response *response_named(const char *name);

/* Responses of N rows with one likelihood. offset is added to f; log likelihoods are multiplied by weight. */
struct sites {
    const struct response *response;
    const double *y, *offset;    /* [N]         */
    const double *size, *weight; /* [N] or NULL */
    /* NULL, or student: degrees of freedom, scale; tweedie: phi, p; intervals: not used, scale; own: see program.h */
    const double *shape;
};
/* Returns the log likelihood l of row i at f + offset, and its first three derivatives in f: g, -W and l3. */
struct site_value sites_at(const struct sites *s, int i, double f);
/* Returns w with l(f + t) >= l(f) + t l'(f) - w t^2 / 2 for every t. l is the log likelihood of row i at f + offset. */
double sites_majorant(const struct sites *s, int i, double f);
/* Averages row i's log likelihood l, g = dl/df and W = -dg/df over N(f + offset, v). l3 is the error of the mean l. */
struct site_value sites_average(const struct sites *s, int i, double f, double v);
