#include <math.h>
#include <stddef.h>
#include <string.h>
#include "block.h"
#include "responses.h"
#include "program.h"

/* Returns l = y f - (y + n) log(1 + e^f) and its derivatives in f, the log odds, for y successes and n failures. */
static struct site_value odds(double f, double y, double n)
{
    const double e = exp(-fabs(f)), far = e / (1.0 + e), near = 1.0 / (1.0 + e);
    const double p = f > 0.0 ? near : far, q = f > 0.0 ? far : near;
    struct site_value v;
    /* success and failure have separate terms, so nothing cancels if all are successes or all are failures */
    v.l = (f > 0.0 ? -n * f : y * f) - (y + n) * log1p(e);
    v.g = y * q - n * p;
    v.W = (y + n) * p * q;
    v.l3 = -v.W * (q - p);
    return v;
}

/* Returns the binomial log likelihood for success probability 1 / (1 + e^-f), y successes and o.size trials. */
static struct site_value logit(double f, struct observed o)
{
    return odds(f, o.y, o.size - o.y);
}

/* Returns the negative binomial log likelihood of o.y for the mean theta e^f, theta = o.size. */
static struct site_value nb(double f, struct observed o)
{
    return odds(f, o.y, o.size);
}

static const double sqrt_half = 0.70710678118654752440,
                    log_root_2pi = 0.91893853320467274178;

/* Returns l = log Phi(z), Phi and phi the standard normal cdf and density, and g = r = phi(z) / Phi(z), W = r (r + z).
 * If z = -x is far below 0, r + z cancels; the continued fraction r - x = 1 / (x + 2 / (x + 3 / ...)) does not. */
static struct site_value trial(double z)
{
    struct site_value v;
    z = fmin(z, 40.0); /* above 39, W and l3 are 0, not 0 times infinity */
    const double log_density = -0.5 * z * z - log_root_2pi;
    if (z > -5.0) {
        const double p = 0.5 * erfc(-z * sqrt_half), r = exp(log_density) / p;
        v.l = z > 0.0 ? log1p(-0.5 * erfc(z * sqrt_half)) : log(p);
        v.g = r;
        v.W = r * (r + z);
        v.l3 = r * ((z + r) * (z + 2.0 * r) - 1.0);
    } else {
        const double x = -z;
        double next = 0.0;
        for (int k = 60; k > 2; k--)
            next = 1.0 / (x + k * next);
        const double over = 1.0 / (x + 2.0 * next), r = x + over;
        v.l = log_density - log(r);
        v.g = r;
        v.W = r * over;
        v.l3 = 2.0 * r * over * (over - next);
    }
    return v;
}

static struct site_value times(double w, struct site_value v)
{
    return (struct site_value){w * v.l, w * v.g, w * v.W, w * v.l3};
}

static struct site_value plus(struct site_value u, struct site_value v)
{
    return (struct site_value){u.l + v.l, u.g + v.g, u.W + v.W, u.l3 + v.l3};
}

/* Returns l = log Phi(-z) and its derivatives in z, for the standard normal cdf Phi. */
static struct site_value failure(double z)
{
    const struct site_value v = trial(-z);
    return (struct site_value){v.l, -v.g, v.W, -v.l3};
}

/* Returns the binomial log likelihood for success probability Phi(f) (normal cdf), y successes and k failures. */
static struct site_value probit(double f, struct observed o)
{
    const double y = o.y, k = o.size - y;
    struct site_value v = {0.0, 0.0, 0.0, 0.0};
    if (y > 0.0)
        v = times(y, trial(f));
    return k > 0.0 ? plus(v, times(k, failure(f))) : v;
}

/* The quasi-log-likelihood of a response y with mean e^f and variance e^(p f) / c is l = c (y e^(a f) / a - e^(b f) /
 * b), with a = 1 - p and b = 2 - p. If a or b is 0, f replaces the quotient e^(0 f) / 0. In the average of l over f ~
 * N(m, v), e^(a m + a^2 v / 2) replaces e^(a f). */
static double exponential(double a, double f, double v)
{
    return a == 0.0 ? 1.0 : exp(a * (f + 0.5 * a * v));
}

static struct site_value power(double f, double v, double y, double c, double p)
{
    const double a = 1.0 - p, b = 2.0 - p,
                 u = y > 0.0 ? c * y * exponential(a, f, v) : 0.0,
                 w = c * exponential(b, f, v);
    return (struct site_value){(a == 0.0 ? c * y * f : u / a) -
                                   (b == 0.0 ? c * f : w / b),
                               u - w, b * w - a * u, a * a * u - b * b * w};
}

static struct site_value poisson(double f, double v, struct observed o)
{
    return power(f, v, o.y, 1.0, 1.0);
}

/* Returns the gamma log likelihood of o.y for mean e^f and shape o.size, averaged over N(f, v). */
static struct site_value gamma_of(double f, double v, struct observed o)
{
    return power(f, v, o.y, o.size, 2.0);
}

static struct site_value tweedie(double f, double v, struct observed o)
{
    return power(f, v, o.y, 1.0 / o.shape[0], o.shape[1]);
}

/* Returns -dlog h / dlog w = w + h - 1 for h = w / (e^w - 1). For small w, it uses a series. */
static double h_slope(double w, double h)
{
    const double w2 = w * w;
    return w < 0.3
               ? w * (0.5 + w * (1.0 / 12.0 - w2 * (1.0 / 720.0 - w2 * (1.0 / 30240.0 -
                                                                        w2 / 1209600.0))))
               : w + h - 1.0;
}

/* Returns l = y f - log(e^m - 1) for a Poisson count y > 0, m = e^f. Its mean is u = m + h, where h = m / (e^m - 1). */
static struct site_value positive_count(double f, struct observed o)
{
    const double y = o.y, m = exp(f),
                 h = m > 0.0 ? (m > 700.0 ? 0.0 : m / expm1(m)) : 1.0;
    const double u = m + h, k = h_slope(m, h), rest = m < 0.3 ? m - k : 1.0 - h;
    return (struct site_value){m < 1.0 ? (y - 1.0) * f + log(h)
                                       : y * f - m - log1p(-exp(-m)),
                               y - u, u * rest, -u * (rest * rest + h * k)};
}

/* Returns l = -(nu + 1) / 2 log(1 + r^2 / a), a = nu s^2, r = y - f, for Student's t with nu degrees of freedom and
 * scale s. l is convex in r^2, so l is never below its tangent, a parabola in f with curvature -student_majorant(). */
static struct site_value student(double f, struct observed o)
{
    const double nu = o.shape[0], a = nu * o.shape[1] * o.shape[1], r = o.y - f,
                 b = a + r * r;
    struct site_value v;
    v.l = -0.5 * (nu + 1.0) * log1p(r * r / a);
    v.g = (nu + 1.0) * r / b;
    v.W = (nu + 1.0) * (a - r * r) / (b * b);
    v.l3 = -2.0 * (nu + 1.0) * r * (3.0 * a - r * r) / (b * b * b);
    return v;
}

static double student_majorant(double f, struct observed o)
{
    const double nu = o.shape[0], r = o.y - f;
    return (nu + 1.0) / (nu * o.shape[1] * o.shape[1] + r * r);
}

/* For censored and interval responses, y = f + s e is known to be in [L, U], where s = shape[1], and e has the cdf F.
 * With a = (L - f) / s and b = (U - f) / s, l = log(F(b) - F(a)). If L = U, y is known, and l = log(F'(a) / s). in_f()
 * turns derivatives of l in -f / s into derivatives in f. */
static struct site_value in_f(struct site_value v, double s)
{
    return (struct site_value){v.l, -v.g / s, v.W / (s * s), -v.l3 / (s * s * s)};
}

/* Returns the log likelihood of y = f + s e in [L, U] for logistic noise e with cdf F(x) = 1 / (1 + e^-x). With a = (L
 * - f) / s and b = (U - f) / s, F(b) - F(a) = F(b) (1 - F(a)) (1 - e^(a - b)), and F'(a) = F(a) (1 - F(a)). */
static struct site_value interval_logistic(double f, struct observed o)
{
    const double L = o.y, U = o.size, s = o.shape[1];
    struct site_value v = {L == U ? -log(s) : log(-expm1((L - U) / s)), 0.0, 0.0, 0.0};
    for (int upper = 0; upper < 2; upper++) {
        const double z = ((upper ? U : L) - f) / s;
        if (isinf(upper ? U : L))
            continue;
        v = plus(v, odds(z, upper, !upper));
    }
    return in_f(v, s);
}

/* These are the positive nodes of the Gauss-Legendre rule with 24 nodes on [-1, 1], and their weights. */
static const double nodes[12] = {0.06405689286260563, 0.19111886747361631,
                                 0.3150426796961634,  0.43379350762604513,
                                 0.54542147138883956, 0.64809365193697555,
                                 0.74012419157855436, 0.82000198597390295,
                                 0.88641552700440107, 0.9382745520027328,
                                 0.97472855597130947, 0.99518721999702131},
                    node_weights[12] = {
                        0.12793819534675224,  0.12583745634682839,  0.12167047292780338,
                        0.11550566805372554,  0.10744427011596562,  0.097618652104113912,
                        0.086190161531953219, 0.073346481411080272, 0.059298584915436658,
                        0.044277438817419676, 0.028531388628933809, 0.012341229799987334};

/* Returns l = log P(a < e < b) for a standard normal e, by quadrature, and its derivatives in a shift of both a and b.
 * Given a < e < b, g is minus the mean of e, W is 1 minus the variance, and l3 is minus the third central moment.
 * Densities are divided by the largest one, at `top`. */
static struct site_value cut_normal(double a, double b)
{
    const double middle = 0.5 * (a + b), half = 0.5 * (b - a),
                 top = a > 0.0 ? a : (b < 0.0 ? b : 0.0);
    double mass = 0.0, mean = 0.0, m2 = 0.0, m3 = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < 24; k++) {
            const double z = middle + half * (k < 12 ? -nodes[k] : nodes[k - 12]),
                         w = node_weights[k % 12] * exp(-0.5 * (z - top) * (z + top));
            if (pass == 0) {
                mass += w;
                mean += w * z;
            } else {
                const double d = z - mean / mass;
                m2 += w * d * d;
                m3 += w * d * d * d;
            }
        }
    return (struct site_value){log(half * mass) - 0.5 * top * top - log_root_2pi,
                               -mean / mass, 1.0 - m2 / mass, -m3 / mass};
}

/* Returns l = log P(a < e < b) for a standard normal e, and its derivatives in a shift of both a and b, in closed form.
 * For wide intervals with a < 1 and b > -1, few digits cancel. */
static struct site_value wide_normal(double a, double b)
{
    const double P = 0.5 * (erf(b * sqrt_half) - erf(a * sqrt_half)),
                 r_a = exp(-0.5 * a * a - log_root_2pi) / P,
                 r_b = exp(-0.5 * b * b - log_root_2pi) / P, mean = r_a - r_b,
                 W = mean * mean - a * r_a + b * r_b,
                 third = r_a * (a * a - 1.0) - r_b * (b * b - 1.0) + 3.0 * mean * W -
                         mean * mean * mean;
    return (struct site_value){log(P), -mean, W, -third};
}

static struct site_value interval_normal(double f, struct observed o)
{
    const double L = o.y, U = o.size, s = o.shape[1], a = (L - f) / s, b = (U - f) / s;
    if (L == U)
        return in_f(
            (struct site_value){-0.5 * a * a - log_root_2pi - log(s), -a, 1.0, 0.0}, s);
    if (isinf(L) && isinf(U))
        return (struct site_value){0.0, 0.0, 0.0, 0.0};
    /* if the density at one end of the interval is below e^-40 times that at the other, this end counts as infinite */
    if (isinf(L) || (b < 0.0 && (a - b) * (a + b) > 80.0))
        return in_f(trial(b), s);
    if (isinf(U) || (a > 0.0 && (b - a) * (b + a) > 80.0))
        return in_f(failure(a), s);
    return in_f(a < 1.0 && b > -1.0 && b - a > 4.0
                    ? wide_normal(fmax(a, -40.0), fmin(b, 40.0)) /* see trial() */
                    : cut_normal(a, b),
                s);
}

/* Returns the log likelihood of y = f + s e in [L, U] for Gumbel noise with cdf F(x) = 1 - exp(-e^x): l = -A + log(1 -
 * e^-w) with A = e^a, w = e^b - A, a = (L - f) / s and b = (U - f) / s. In its derivatives, h = w / (e^w - 1). */
static struct site_value interval_gumbel(double f, struct observed o)
{
    const double L = o.y, U = o.size, s = o.shape[1], a = (L - f) / s, A = exp(a);
    struct site_value v = {-A, -A, A, -A};
    if (L == U) {
        v.l += a - log(s);
        v.g += 1.0;
    } else if (!isinf(U)) {
        /* if wide > 40, A = e^a, a = (L - f) / s, is negligible beside e^b; A may underflow, e^(b - a) overflow */
        const double wide = (U - L) / s, b = (U - f) / s,
                     w = wide > 40.0 ? exp(b) : A * expm1(wide);
        if (w < 700.0) {
            const double h = w > 0.0 ? w / expm1(w) : 1.0, k = h_slope(w, h);
            /* if w = e^b - e^a (a = (L - f) / s, b = (U - f) / s) underflows, log w replaces log(1 - e^-w) */
            v.l += w > 0x1p-1000 ? log(-expm1(-w))
                                 : (wide > 40.0 ? b : a + log(expm1(wide)));
            v.g += h;
            v.W += h * k;
            v.l3 += h * (k * k - w + h * k);
        }
    }
    return in_f(v, s);
}

/* Evaluates a user's likelihood. Programs 0 to 3 compute l = log p(y | f), g = dl/df, W = -d2l/df2, l3 = d3l/df3. */
static struct site_value own(double f, struct observed o)
{
    return (struct site_value){
        program_run(o.shape, 0, f, o.y), program_run(o.shape, 1, f, o.y),
        program_run(o.shape, 2, f, o.y), program_run(o.shape, 3, f, o.y)};
}

static double own_weight(double f, struct observed o)
{
    return program_run(o.shape, 4, f, o.y);
}

/* The columns are: name; log density l with derivatives; weights of a majorant; half width of the strip of complex f
 * where l is analytic; averages of l over f in closed form; number of shape parameters. */
static const struct response table[] = {
    {"logit", logit, NULL, 3.14, NULL, 0},
    {"probit", probit, NULL, 2.8, NULL, 0}, /* Phi has zeros at +-1.92 +- 2.82 i */
    {"log", NULL, NULL, INFINITY, poisson, 0},
    {"nb", nb, NULL, 3.14, NULL, 0},
    {"gamma", NULL, NULL, INFINITY, gamma_of, 0},
    {"tweedie", NULL, NULL, INFINITY, tweedie, 2},
    {"positive", positive_count, NULL, 1.57, NULL, 0}, /* singular at e^f = 2 pi i */
    {"logistic", interval_logistic, NULL, 3.14, NULL, 2},
    /* for intervals [L, U], the strip where l is analytic is narrowest, with half width 2.4 s, if (U - L) / s = 3.5 */
    {"normal", interval_normal, NULL, 2.4, NULL, 2},
    {"gumbel", interval_gumbel, NULL, 1.57, NULL, 2},
    {"student", student, student_majorant, 1.0, NULL, 2},
    {"own", own, NULL, 0.5, NULL,
     -1}, /* the strip is a guess; averages estimate their error */
    {"own_expected", own, own_weight, 0.5, NULL, -1}};

const struct response *response_named(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(name, table[i].name) == 0)
            return table + i;
    return NULL;
}

static struct observed observed_at(const struct sites *s, int i)
{
    return (struct observed){s->y[i], or_one(s->size, i), s->shape};
}

struct site_value sites_at(const struct sites *s, int i, double f)
{
    const struct response *r = s->response;
    const struct observed o = observed_at(s, i);
    const double at = f + s->offset[i];
    return times(or_one(s->weight, i),
                 r->at == NULL ? r->average(at, 0.0, o) : r->at(at, o));
}

/* Averages l, g and W over N(f, sd^2) by the trapezoid rule within 8.5 sd. If 10,001 terms suffice, the step is at most
 * sd / 2 and a fifth of `strip`, so the error is e^-30. `strip` is the half width of the strip of complex f where l is
 * analytic. l3 estimates the error of l: the average of every second term (error e^-15) minus that of all. */
static struct site_value average(const struct sites *s, int i, double f, double sd)
{
    const double strip =
        s->response->strip * (s->shape == NULL ? 1.0 : sqrt(s->shape[0]) * s->shape[1]);
    const double wanted = 0.2 * strip / sd, h = wanted < 0.5 ? wanted : 0.5;
    const int most = 5000, n = h * most > 8.5 ? 2 * (int)ceil(4.25 / h) : most;
    const struct observed o = observed_at(s, i);
    struct site_value sum = {0.0, 0.0, 0.0, 0.0};
    double mass = 0.0, mass_even = 0.0;
    for (int k = -n; k <= n; k++) {
        const double z = 8.5 * k / n, w = exp(-0.5 * z * z);
        const struct site_value at = s->response->at(f + sd * z, o);
        mass += w;
        sum.l += w * at.l;
        sum.g += w * at.g;
        sum.W += w * at.W;
        if (k % 2 == 0) {
            mass_even += w;
            sum.l3 += w * at.l;
        }
    }
    sum.l3 = mass * sum.l3 / mass_even - sum.l;
    return times(1.0 / mass, sum);
}

struct site_value sites_average(const struct sites *s, int i, double f, double v)
{
    const double at = f + s->offset[i];
    if (s->response->average == NULL)
        return times(or_one(s->weight, i), average(s, i, at, sqrt(v)));
    struct site_value of = s->response->average(at, v, observed_at(s, i));
    of.l3 = 0.0;
    return times(or_one(s->weight, i), of);
}

double sites_majorant(const struct sites *s, int i, double f)
{
    return s->response->majorant(f + s->offset[i], observed_at(s, i)) *
           or_one(s->weight, i);
}
