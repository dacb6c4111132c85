/*
 * The exact GP in quadruple precision, for bench/certify-properties.R and bench/bounds-properties.R: what a certificate
 * is held against when double precision is the doubt. Called by .C(); needs a compiler with __float128 (gcc, x86).
 *
 *     mean = center + k(x, X) alpha,  alpha = (K + s2 W^{-1})^{-1} (y - center),  variance = k(x, x) - |L^{-1} k(X, x)|^2
 *     log evidence = -(n log(2 pi) + log det(K + s2 W^{-1}) + (y - center)'alpha) / 2
 */
#include <quadmath.h>
#include <stdlib.h>

typedef __float128 quad;

/* A kernel as numbers: how many terms; of each its variance and how many factors; of each its profile (below), how
 * many inputs and how many parameters, the parameters, and of each input its column, lengthscale and centre (or, in an
 * additive kernel, the number of its term). */
enum { SE, MATERN12, MATERN32, MATERN52, RQ, PERIODIC, LINEAR, MEAN, POLYNOMIAL, CONSTANT, WHITE, EXCHANGEABLE,
       ORDERED, FULL, GROUP, ADDITIVE };

/* correlation of the levels i >= j: rows of unit length by angles, L L' */
static quad by_angles(const double *p, int n, int i, int j)
{
    quad sum = 0;
    for (int c = 0; c <= j; c++) {
        quad both[2] = {1, 1};
        for (int r = 0; r < 2; r++) {
            const int row = r == 0 ? i : j;
            for (int q = 0; q < c; q++) { /* the angles stand column by column below the diagonal */
                const quad t = p[q * n - q * (q + 1) / 2 + row - q - 1];
                both[r] *= sinq(M_PIq * t / (1 + t));
            }
            if (c < row) {
                const quad t = p[c * n - c * (c + 1) / 2 + row - c - 1];
                both[r] *= cosq(M_PIq * t / (1 + t));
            }
        }
        sum += both[0] * both[1];
    }
    return sum;
}

static quad radial(int profile, quad r2)
{
    const quad a = sqrtq((profile == MATERN32 ? 3 : profile == MATERN52 ? 5 : 1) * r2);
    switch (profile) {
    case SE:
        return expq(-r2 / 2);
    case MATERN12:
        return expq(-a);
    case MATERN32:
        return (1 + a) * expq(-a);
    default:
        return (1 + a + a * a / 3) * expq(-a);
    }
}

/* u'S v in one level, else 0: the design is the intercept (p[0]) and the inputs after the level. S = diag(s) R diag(s)
 * has s = (1, p[2], ...); R is the identity, or given by angles (p[1]). */
static quad group_value(const double *p, int n, const double *input, const double *x, int ldx, const double *z, int ldz)
{
    if (x[(size_t)input[0] * ldx] != z[(size_t)input[0] * ldz])
        return 0;
    const int first = p[0] == 1, size = n - 1 + first;
    const double *scale = p + 2, *angles = scale + size - 1;
    quad sum = 0;
    for (int i = 0; i < size; i++) {
        for (int j = 0; j < size; j++) {
            const size_t a = first && i == 0 ? 0 : (size_t)input[3 * (i + 1 - first)];
            const size_t b = first && j == 0 ? 0 : (size_t)input[3 * (j + 1 - first)];
            const quad u = first && i == 0 ? 1 : x[a * ldx], v = first && j == 0 ? 1 : z[b * ldz];
            const quad s = (i == 0 ? 1 : (quad)scale[i - 1]) * (j == 0 ? 1 : (quad)scale[j - 1]);
            sum += u * v * s * (p[1] == 1 ? by_angles(angles, size, i < j ? j : i, i < j ? i : j) : i == j);
        }
    }
    return sum;
}

/* p: the profile of all inputs together, the ratio of lengthscales, the share of the terms of one input, and of pairs */
static quad additive_value(const double *p, int n, const double *input, const double *x, int ldx, const double *z,
                           int ldz)
{
    quad r2 = 0, one = 0, squares = 0, both = 0;
    int terms = 0;
    for (int q = 0; q < n; q++)
        terms = input[3 * q + 2] > terms ? (int)input[3 * q + 2] : terms;
    for (int term = 1; term <= terms; term++) {
        quad own = 0;
        for (int q = 0; q < n; q++) {
            const quad d = (x[(size_t)input[3 * q] * ldx] - (quad)z[(size_t)input[3 * q] * ldz]) / input[3 * q + 1];
            own += (int)input[3 * q + 2] == term ? d * d : 0;
        }
        const quad k = expq(-(quad)p[1] * p[1] * own / 2);
        r2 += own;
        one += k;
        squares += k * k;
    }
    if (terms > 1)
        both = (one * one - squares) / ((quad)terms * (terms - 1));
    return (radial((int)p[0], r2) + p[2] * one / terms + p[3] * both) / (1 + (quad)p[2] + p[3]);
}

static quad factor_value(const double **code, const double *x, int ldx, const double *z, int ldz)
{
    const double *c = *code;
    const int profile = (int)c[0], n = (int)c[1], n_p = (int)c[2];
    const double *p = c + 3, *input = p + n_p, *inputs = input;
    quad r2 = 0, s = 0, centred = 1, waves = 0, a, g;
    int equal = 1, i = 0, j = 0;
    for (int q = 0; q < n; q++, input += 3) {
        const quad u = x[(size_t)input[0] * ldx], v = z[(size_t)input[0] * ldz];
        r2 += (u - v) / input[1] * ((u - v) / input[1]);
        s += u * v;
        if (profile == MEAN)
            centred += (u - input[2]) * (v - input[2]) * input[1] * input[1];
        if (profile == PERIODIC) {
            a = sinq(M_PIq * (u - v) / p[0]) / input[1];
            waves += a * a;
        }
        equal = equal && u == v;
        i = u == 1 ? q : i;
        j = v == 1 ? q : j;
    }
    *code = input;
    switch (profile) {
    case SE:
    case MATERN12:
    case MATERN32:
    case MATERN52:
        return radial(profile, r2);
    case RQ:
        return powq(1 + r2 / (2 * (quad)p[0]), -(quad)p[0]);
    case PERIODIC:
        return expq(-2 * waves);
    case LINEAR:
        return s;
    case MEAN:
        return centred;
    case POLYNOMIAL:
        g = 1;
        for (int q = 0; q < (int)p[1]; q++)
            g *= s + p[0];
        return g;
    case CONSTANT:
        return 1;
    case WHITE:
        return equal;
    case EXCHANGEABLE:
        return i == j ? 1 : expq(-(quad)p[0]);
    case ORDERED:
        g = 0;
        for (int q = i < j ? i : j; q < (i < j ? j : i); q++)
            g += p[q];
        return expq(-g);
    case GROUP:
        return group_value(p, n, inputs, x, ldx, z, ldz);
    case ADDITIVE:
        return additive_value(p, n, inputs, x, ldx, z, ldz);
    default:
        return by_angles(p, n, i < j ? j : i, i < j ? i : j);
    }
}

static quad cross(const double *code, const double *x, int ldx, const double *z, int ldz)
{
    quad k = 0;
    int terms = (int)*code++;
    while (terms-- > 0) {
        quad product = *code++;
        for (int factors = (int)*code++; factors > 0; factors--)
            product *= factor_value(&code, x, ldx, z, ldz);
        k += product;
    }
    return k;
}

/* B (n x m) := L^{-1} B, the rows of L one after another in memory */
static void solve(int n, int m, const quad *L, quad *B)
{
    for (int c = 0; c < m; c++) {
        quad *b = B + (size_t)c * n;
        for (int i = 0; i < n; i++) {
            const quad *row = L + (size_t)i * n;
            quad sum = b[i];
            for (int j = 0; j < i; j++)
                sum -= row[j] * b[j];
            b[i] = sum / row[i];
        }
    }
}

/* L L' = K + s2 W^{-1}, row after row, and b = y - offset - center: 0, or 1 where it is not positive definite */
static int factor(const double *kernel, double s2, int n, const double *x, const double *y, const double *offset,
                  double center, const double *weights, quad *L, quad *b)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++)
            L[(size_t)i * n + j] = cross(kernel, x + i, n, x + j, n);
        L[(size_t)i * n + i] += (quad)s2 / weights[i];
        b[i] = (quad)y[i] - offset[i] - center;
    }
    for (int i = 0; i < n; i++) {
        quad *row = L + (size_t)i * n;
        for (int j = 0; j <= i; j++) {
            const quad *other = L + (size_t)j * n;
            quad sum = row[j];
            for (int q = 0; q < j; q++)
                sum -= row[q] * other[q];
            if (j < i)
                row[j] = sum / other[j];
            else if (sum > 0)
                row[i] = sqrtq(sum);
            else
                return 1;
        }
    }
    return 0;
}

void exact_quad(const double *kernel, const double *s2, const int *n_, const double *x, const double *y,
                const double *offset, const double *center, const double *weights, const int *m_, const double *x_new, double *mean,
                double *mean_low, double *sd, int *status)
{
    const int n = *n_, m = *m_;
    quad *L = malloc((size_t)n * n * sizeof(quad)), *b = malloc((size_t)n * sizeof(quad)),
         *k = malloc((size_t)n * sizeof(quad));
    *status = factor(kernel, *s2, n, x, y, offset, *center, weights, L, b);
    if (*status == 0) {
        solve(n, 1, L, b);
        for (int c = 0; c < m; c++) {
            quad sum = *center, left = cross(kernel, x_new + c, m, x_new + c, m);
            for (int i = 0; i < n; i++)
                k[i] = cross(kernel, x + i, n, x_new + c, m);
            solve(n, 1, L, k);
            for (int i = 0; i < n; i++) {
                sum += k[i] * b[i];
                left -= k[i] * k[i];
            }
            mean[c] = (double)sum; /* and the digits that a double has no room for */
            mean_low[c] = (double)(sum - mean[c]);
            sd[c] = (double)sqrtq(left > 0 ? left : 0);
        }
    }
    free(L);
    free(b);
    free(k);
}

/* evidence: [2], the number and the digits that a double has no room for */
void evidence_quad(const double *kernel, const double *s2, const int *n_, const double *x, const double *y,
                   const double *offset, const double *center, const double *weights, double *evidence, int *status)
{
    const int n = *n_;
    quad *L = malloc((size_t)n * n * sizeof(quad)), *b = malloc((size_t)n * sizeof(quad));
    *status = factor(kernel, *s2, n, x, y, offset, *center, weights, L, b);
    if (*status == 0) {
        quad sum = n * logq(2 * M_PIq);
        solve(n, 1, L, b);
        for (int i = 0; i < n; i++)
            sum += 2 * logq(L[(size_t)i * n + i]) + b[i] * b[i];
        sum = -sum / 2;
        evidence[0] = (double)sum;
        evidence[1] = (double)(sum - evidence[0]);
    }
    free(L);
    free(b);
}
