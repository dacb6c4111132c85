#include <float.h>
#include <math.h>
#include "certify.h"
#include "linalg.h"

double certify_slack(int M, int N)
{
    return 4.0 * (M + sqrt((double)N) + 32.0) * DBL_EPSILON;
}

size_t certify_size(int M, int n)
{
    return 3 * (size_t)M * n + (size_t)n;
}

/* Returns max(x, 0), or NaN if x is NaN after an overflow. (fmax() would return 0, which is not an upper bound.) */
static double positive(double x)
{
    return x <= 0.0 ? 0.0 : x;
}

static double or_else(double x, double otherwise)
{
    return isnan(x) ? otherwise : x;
}

/* These are bounds on var_exact - var_SoR at x. E is the residual prior covariance, h has the coefficients of responses
 * in SoR's mean, root = sqrt(E(x, x)), ratio >= |E|_2 / s2, and eta >= sqrt(h'E h) but for rounding, which eta_true
 * includes. kappa bounds the rounding error of root + eta, kappa_x that of root; cross_error, gain_error and norm_error
 * those of e->cross = h'e, e->gain = e'(k(X, X) - E + s2 I)^{-1} e and sqrt(gain), for e = E(X, x). */
struct left {
    double low, high;
};

static struct left without_crossing(double root, double eta, double kappa, double ratio)
{
    const double low = positive(root - eta - kappa), wide = root + eta + kappa;
    return (struct left){low * low / (1.0 + ratio), wide * wide};
}

static struct left with_crossing(const struct crossing *e, double root, double eta_true,
                                 double kappa_x, double cross_error, double gain_error,
                                 double norm_error, double ratio, struct left known)
{
    const double E_low = positive(root - kappa_x), E_high = root + kappa_x,
                 wide = E_high + eta_true, narrow = positive(E_low - eta_true);
    const double p2_low =
        fmax(narrow * narrow, E_low * E_low - 2.0 * (e->cross + cross_error));
    const double p2_high =
        fmin(wide * wide,
             E_high * E_high - 2.0 * (e->cross - cross_error) + eta_true * eta_true);
    const double apart = norm_error + sqrt(ratio) * eta_true;
    const double q_high = sqrt(positive(e->gain) + gain_error) + apart,
                 q_low = positive(sqrt(positive(e->gain - gain_error)) - apart);
    const double low =
        p2_low > 0.0 ? p2_low * (p2_low / (p2_low + q_high * q_high)) : 0.0;
    const double high = p2_high - q_low * q_low / (1.0 + ratio);
    known.low = fmax(known.low, low);
    known.high = fmin(known.high, high);
    if (known.high < known.low) /* rounding may put `low` above `high` */
        known.high = known.low;
    return known;
}

/* Computes the bounds at place `row` of c->to, which has the prediction of f(x). Let A = L^{-1} k(Z, X), a = L^{-1}
 * k(Z, x), G = A A', C_x = (s2 I + G)^{-1} a, h_x = A'C_x and E = k(X, X) - A'A. Then hGh = C_x'G C_x, hPsih = C_x'Psi
 * C_x >= h_x'E h_x and CC = |C_x|^2. Rounding errors of k(x, x) are proportional to `size`. */
static void certify_point(const struct certifying *c, int row, double exact_prior,
                          double size, double hGh, double hPsih, double CC)
{
    const struct norms *s = c->norms;
    const double s2 = c->posterior->z.model->s2, sor = c->to.sor_variance[row];
    double *mean_error = c->to.mean_error + row, *var_lower = c->to.var_lower + row,
           *var_upper = c->to.var_upper + row;
    /* Rounding moves C C' for the Cholesky factor C of s2 I + G, G = A A', by up to inner s2. This moves A'C_x (CC is
     * |C_x|^2) by up to inner sqrt(s2 CC) / 2, because |A'(s2 I + G)^{-1}|_2 <= 1 / (2 sqrt(s2)). */
    const double inner = s->growth * s->G_norm / s2, moved = inner * sqrt(s2 * CC) / 2.0;
    const double prior = exact_prior + 4.0 * s->unit * (size - exact_prior),
                 prior_upper = prior * (1.0 + 2.0 * s->unit);
    const double everything =
        fabs(c->to.mean[row]) + sqrt(prior * s->c); /* |mean_exact|_H^2 <= c */

    if (!(inner < 0.25)) { /* rounding is too large: only prior bounds */
        *mean_error = or_else(everything * (1.0 + 8.0 * DBL_EPSILON), INFINITY);
        *var_lower = 0.0;
        *var_upper = prior_upper;
        return;
    }
    const double h = sqrt(positive(hGh) + s->growth * s->G_norm * CC) + moved;
    const double most = fmax(size, s->most);
    const double kappa_x = sqrt(s->slack * size), kappa_rows = sqrt(s->slack * most),
                 kappa_h = kappa_rows * sqrt(s->weight) * h;
    const double by_groups = sqrt(positive(hPsih) + s->growth * s->Psi_norm * CC) +
                             sqrt(s->spread) * kappa_h + sqrt(s->lam) * moved;
    const double eta = fmin(sqrt(s->lam) * h, by_groups),
                 root = sqrt(c->to.unexplained[row]);
    const double kappa = kappa_x + kappa_h, wide = root + eta + kappa;
    /* k_error bounds the effect of errors of kernel values on k(X, x) - K h_x, for coefficients h_x with norm h. */
    const double e_error = s->unit * sqrt(size * s->K_norm),
                 k_error = e_error + s->unit * s->K_norm * h;

    *mean_error = wide * s->w_E;
    *mean_error += sqrt(CC) * s->beta_error; /* error of beta */
    *mean_error +=
        s->slack * most * s->alpha * (1.0 + sqrt(s->weight) * h); /* error of a */
    *mean_error += s->growth * sqrt(size) * s->beta;              /* error of a'beta */
    *mean_error += k_error * s->w_norm;
    *mean_error *= 1.0 + 16.0 * DBL_EPSILON;
    *mean_error = or_else(fmin(*mean_error, everything), INFINITY);

    const double ratio = s->lam / s2;
    struct left left = without_crossing(root, eta, kappa, ratio);
    if (c->crossings != NULL) {
        const struct crossing e = {c->crossings->cross[row], c->crossings->gain[row],
                                   c->crossings->size[row]};
        const double norm = sqrt(positive(e.size));
        const double cross_error = root * kappa_h + kappa_x * (eta + kappa_h) +
                                   (s->growth * h + moved) * norm + h * e_error;
        const double gain_error = (inner + s->growth) * e.size / s2;
        const double kappa_d = sqrt(s->slack * most * s->weight / s2);
        const double norm_error =
            sqrt(ratio) * kappa_x + kappa_d * (root + kappa_x) + e_error / sqrt(s2);
        left = with_crossing(&e, root, eta + kappa_h, kappa_x, cross_error, gain_error,
                             norm_error, ratio, left);
    }
    const double sor_error =
        sor * (inner / (1.0 - inner) + 4.0 * DBL_EPSILON) + 2.0 * k_error * h;
    *var_upper = (sor + sor_error + left.high) * (1.0 + 8.0 * DBL_EPSILON);
    *var_upper = fmin(*var_upper, prior_upper);
    *var_lower = sor - sor_error - (2.0 * wide - kappa) * kappa;
    *var_lower += left.low;
    *var_lower = positive(or_else(*var_lower, 0.0) * (1.0 - 8.0 * DBL_EPSILON));
}

void certify_features(const struct certifying *c, int n, int first, const double *A,
                      const double *prior, const double *size, double *work)
{
    const struct posterior *p = c->posterior;
    const int M = p->z.M;
    const size_t m = (size_t)M;
    double *Cx = work, *GC = Cx + m * n, *PsiC = GC + m * n;
    double *sor = c->to.sor_variance + first, *unexplained = c->to.unexplained + first;

    mult_Atx(M, n, 1.0, A, p->beta, 0.0, c->to.mean + first);
    copy((size_t)n, prior, unexplained);
    subtract_squares(M, n, A, unexplained);
    copy(m * n, A, Cx);
    solve_lower(M, n, p->C, Cx);
    for (int i = 0; i < n; i++)
        sor[i] = p->z.model->s2 * sum_squares(m, Cx + m * i);
    solve_lower_t(M, n, p->C, Cx);
    mult_AB(M, M, n, 1.0, c->norms->G, Cx, 0.0, GC); /* |h|^2 = C_x'G C_x */
    mult_AB(M, M, n, 1.0, c->norms->Psi, Cx, 0.0, PsiC);
    for (int i = 0; i < n; i++) {
        const double *C_x = Cx + m * i;
        certify_point(c, first + i, prior[i], size[i], dot(m, C_x, GC + m * i),
                      dot(m, C_x, PsiC + m * i), sum_squares(m, C_x));
    }
}

static void certify_block(const void *self, const struct visit *v)
{
    const struct certifying *c = self;
    const struct posterior *p = c->posterior;
    const struct block *b = &v->block;
    double *prior = v->work + 3 * (size_t)p->z.M * b->n;
    kernel_diagonal(p->z.model->kernel, rows_of(b), prior);
    certify_features(c, b->n, b->first, v->A, prior, prior, v->work);
}

struct sink certifying_sink(const struct certifying *self)
{
    return row_sink(self, certify_block, certify_size(self->posterior->z.M, 1), 0);
}

struct kriging_bounds certify_kriged(const struct norms *s, double s2, int n_c,
                                     double sum_w, const struct kriged *x)
{
    const double units = s->unit + (2.0 * sqrt((double)n_c) + n_c / 64.0) * DBL_EPSILON;
    const double most = fmax(x->size, s->most);
    const double size = most * (1.0 + x->w1) * (1.0 + x->w1);
    const double J_error = units * size + 8.0 * DBL_EPSILON * s2 * x->ww;
    const double inner = s->growth * s->G_norm / s2, tau = s->slack * most * s->weight;
    const double down = 1.0 - 16.0 * DBL_EPSILON, up = 1.0 + 16.0 * DBL_EPSILON;
    struct kriging_bounds out;

    out.J = or_else(up * (positive(x->J) + J_error), INFINITY);
    out.var_upper = fmin(out.J, up * x->prior);
    out.var_lower = 0.0;
    out.q = out.J;
    if (!(inner < 0.25) || !(tau < 0.5 * s2)) /* rounding is too large */
        return out;

    const double h_error =
        units * most * sqrt(sum_w) * (1.0 + x->w1) + 4.0 * DBL_EPSILON * s2 * sqrt(x->ww);
    const double h = sqrt(x->hh) + h_error;
    const double q_error = (inner + s->growth) * x->hh / s2;
    const double q_root =
        sqrt(positive(x->hh - x->ch) / s2 + q_error) + h_error / sqrt(s2);
    const double q = q_root * q_root;
    out.q = fmin(out.J, or_else(up * q / (1.0 - tau / s2), INFINITY));
    const double by_q = x->J - J_error - up * q / (1.0 - tau / s2);
    const double q_least =
        positive(sqrt(positive((x->hh - x->ch) / s2 - q_error)) - h_error / sqrt(s2));
    const double by_lam = out.J - q_least * q_least / (1.0 + (s->lam + tau) / s2);
    out.var_upper = fmin(out.var_upper, up * positive(by_lam));

    const double sor_error = x->sor * (inner / (1.0 - inner) + 4.0 * DBL_EPSILON);
    const double h_x = sqrt((x->sor + sor_error) / s2); /* s2 |h_x|^2 <= var_SoR */
    const double JQ_error = s->growth * size, p2_error = J_error + JQ_error;
    const double d2 = x->JQ - x->sor, d2_error = JQ_error + sor_error;
    const double xh_error = (inner / 2.0 + s->growth) * h_x * h + h_error * h_x;
    const double p2 = x->J - x->JQ, y = x->xh - x->wh - d2;
    const double y_high = y + xh_error + J_error + d2_error +
                          tau * sqrt((positive(d2) + d2_error) * x->ww / s2);
    const double z_root =
        sqrt(positive(q - d2 - 2.0 * y + 2.0 * (xh_error + J_error) + 3.0 * d2_error)) +
        tau * sqrt(x->ww / s2);
    const double p2_high = positive(p2) + p2_error + s->slack * most + tau * x->ww;
    const double over = positive(p2 - p2_error - y_high);
    double low = x->sor - sor_error - s->slack * most - tau * out.J / s2;
    if (over > 0.0)
        low += over * (over / (p2_high + z_root * z_root));
    out.var_lower = down * positive(or_else(fmax(by_q, low), 0.0));
    return out;
}
